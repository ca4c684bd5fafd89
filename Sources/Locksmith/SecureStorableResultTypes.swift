// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// What was read: each attribute in its own type.
public protocol SecureStorableResultType: SecureStorable, Sendable {
    /// The attributes and the value as the keychain delivered them, under the `kSec…` constants.
    var resultDictionary: [String: Any] { get }
    /// The data that was stored: a date is a date again, a number can be cast to any type that holds it.
    ///
    /// Nil if the item has no value, which only other programs write.
    var data: [String: Any]? { get }
}

/// The result for something that belongs to an account.
public protocol AccountBasedSecureStorableResultType: AccountBasedSecureStorable, SecureStorableResultType {}
/// The result for something with a description.
public protocol DescribableSecureStorableResultType: DescribableSecureStorable, SecureStorableResultType {}
/// The result for something with a comment.
public protocol CommentableSecureStorableResultType: CommentableSecureStorable, SecureStorableResultType {}
/// The result for something that knows what created it.
public protocol CreatorDesignatableSecureStorableResultType: CreatorDesignatableSecureStorable, SecureStorableResultType {}
/// The result for something with a label.
public protocol LabellableSecureStorableResultType: LabellableSecureStorable, SecureStorableResultType {}
/// The result for something with a type.
public protocol TypeDesignatableSecureStorableResultType: TypeDesignatableSecureStorable, SecureStorableResultType {}
/// The result for something that may be shown or not.
public protocol IsInvisibleAssignableSecureStorableResultType: IsInvisibleAssignableSecureStorable, SecureStorableResultType {}
/// The result for something that may stand for a password that is not stored.
public protocol IsNegativeAssignableSecureStorableResultType: IsNegativeAssignableSecureStorable, SecureStorableResultType {}

/// A generic password that was read.
public protocol GenericPasswordSecureStorableResultType: GenericPasswordSecureStorable, AccountBasedSecureStorableResultType,
    DescribableSecureStorableResultType, CommentableSecureStorableResultType, CreatorDesignatableSecureStorableResultType,
    LabellableSecureStorableResultType, TypeDesignatableSecureStorableResultType, IsInvisibleAssignableSecureStorableResultType,
    IsNegativeAssignableSecureStorableResultType
{}

/// An internet password that was read.
public protocol InternetPasswordSecureStorableResultType: InternetPasswordSecureStorable, AccountBasedSecureStorableResultType,
    DescribableSecureStorableResultType, CommentableSecureStorableResultType, CreatorDesignatableSecureStorableResultType,
    TypeDesignatableSecureStorableResultType, IsInvisibleAssignableSecureStorableResultType, IsNegativeAssignableSecureStorableResultType
{}

// MARK: Attributes

extension SecureStorableResultType {
    /// When the item can be read and written.
    public var accessible: LocksmithAccessibleOption? { text(kSecAttrAccessible).flatMap(LocksmithAccessibleOption.init) }
    /// Which programs may use the item.
    public var accessGroup: String? { text(kSecAttrAccessGroup) }

    func text(_ attribute: CFString) -> String? { resultDictionary[attribute as String] as? String }

    func data(_ attribute: CFString) -> Data? { resultDictionary[attribute as String] as? Data }

    func flag(_ attribute: CFString) -> Bool? { (resultDictionary[attribute as String] as? NSNumber)?.boolValue }

    /// Nil for a number that the type does not hold.
    func number<Number: BinaryInteger>(_ attribute: CFString) -> Number? {
        (resultDictionary[attribute as String] as? NSNumber).flatMap { Int64(exactly: $0) }.flatMap { Number(exactly: $0) }
    }
}

extension DescribableSecureStorableResultType {
    /// What sort of item it is.
    public var description: String? { text(kSecAttrDescription) }
}

extension CommentableSecureStorableResultType {
    /// A comment for a person to read.
    public var comment: String? { text(kSecAttrComment) }
}

extension CreatorDesignatableSecureStorableResultType {
    /// The number of what created it.
    public var creator: UInt? { number(kSecAttrCreator) }
}

extension LabellableSecureStorableResultType {
    /// The name that a person sees.
    public var label: String? { text(kSecAttrLabel) }
}

extension TypeDesignatableSecureStorableResultType {
    /// The number of its type.
    public var type: UInt? { number(kSecAttrType) }
}

extension IsInvisibleAssignableSecureStorableResultType {
    /// Whether it should not be shown to a person.
    public var isInvisible: Bool? { flag(kSecAttrIsInvisible) }
}

extension IsNegativeAssignableSecureStorableResultType {
    /// Whether there is a password that must be asked for each time.
    public var isNegative: Bool? { flag(kSecAttrIsNegative) }
}

extension GenericPasswordSecureStorableResultType {
    /// Bytes that mean something to the program.
    public var generic: Data? { data(kSecAttrGeneric) }
}

extension InternetPasswordSecureStorableResultType {
    /// The path on the server.
    public var path: String? { text(kSecAttrPath) }
    /// The security domain on the server.
    public var securityDomain: String? { text(kSecAttrSecurityDomain) }
}

/// A generic password that was read.
///
/// `@unchecked Sendable`: dictionaries of `Any` cannot show it, but nothing in these ever changes: the keychain delivers strings, bytes,
/// numbers and dates, the archive is read as such, and a program's own closure gives up what it delivers.
struct GenericPasswordResult: GenericPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    let account: String
    let service: String

    /// - Throws: ``LocksmithError/decode`` for an answer in which one of these is of another type.
    init(of password: some GenericPasswordSecureStorable, _ found: FoundItem) throws(LocksmithError) {
        resultDictionary = found.attributes
        data = found.data
        account = try found.text(kSecAttrAccount, defaultingTo: password.account)
        service = try found.text(kSecAttrService, defaultingTo: password.service)
    }
}

/// An internet password that was read.
///
/// `@unchecked Sendable`: as above.
struct InternetPasswordResult: InternetPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    let account: String
    let authenticationType: LocksmithInternetAuthenticationType
    let internetProtocol: LocksmithInternetProtocol
    let port: Int
    let server: String

    /// - Throws: ``LocksmithError/decode`` for an answer in which one of these is of another type.
    init(of password: some InternetPasswordSecureStorable, _ found: FoundItem) throws(LocksmithError) {
        resultDictionary = found.attributes
        data = found.data
        account = try found.text(kSecAttrAccount, defaultingTo: password.account)
        server = try found.text(kSecAttrServer, defaultingTo: password.server)
        port = try found.value(kSecAttrPort, defaultingTo: password.port) { ($0 as? NSNumber).flatMap(Int.init(exactly:)) }
        internetProtocol = try found.value(kSecAttrProtocol, defaultingTo: password.internetProtocol) {
            ($0 as? String).flatMap(LocksmithInternetProtocol.init)
        }
        authenticationType = try found.value(kSecAttrAuthenticationType, defaultingTo: password.authenticationType) {
            ($0 as? String).flatMap(LocksmithInternetAuthenticationType.init)
        }
    }
}

/// Secrets that are printed by mistake: a result shows what it is, and nothing that it holds.
extension GenericPasswordResult: CustomDebugStringConvertible, CustomReflectable {
    var debugDescription: String { "a generic password" }
    var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension InternetPasswordResult: CustomDebugStringConvertible, CustomReflectable {
    var debugDescription: String { "an internet password" }
    var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// What a reading request found.
struct FoundItem {
    let attributes: [String: Any]
    /// Nil: the item has no value.
    let data: [String: Any]?

    /// An attribute in its type.
    ///
    /// The keychain always tells those that decide which item is found. The closure of a type may be silent about them: the item
    /// is then taken to be the one that was asked for.
    func value<Value>(_ attribute: CFString, defaultingTo asked: Value, _ read: (Any) -> Value?) throws(LocksmithError) -> Value {
        guard let stored = attributes[attribute as String] else { return asked }
        guard let value = read(stored) else { throw .unreadableValue }
        return value
    }

    func text(_ attribute: CFString, defaultingTo asked: String) throws(LocksmithError) -> String {
        try value(attribute, defaultingTo: asked) { $0 as? String }
    }
}
