// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// An item that was read, with each attribute in its own type.
public protocol SecureStorableResultType: SecureStorable, Sendable {
    /// The attributes and the value that the keychain returned, under the `kSec…` constants.
    var resultDictionary: [String: Any] { get }
    /// The stored data. A number can be cast to any type that can represent it.
    ///
    /// Nil if the item has no value, which is possible only for items of other programs.
    var data: [String: Any]? { get }
}

/// The result for an item with an account.
public protocol AccountBasedSecureStorableResultType: AccountBasedSecureStorable, SecureStorableResultType {}
/// The result for an item with a description.
public protocol DescribableSecureStorableResultType: DescribableSecureStorable, SecureStorableResultType {}
/// The result for an item with a comment.
public protocol CommentableSecureStorableResultType: CommentableSecureStorable, SecureStorableResultType {}
/// The result for an item with a creator.
public protocol CreatorDesignatableSecureStorableResultType: CreatorDesignatableSecureStorable, SecureStorableResultType {}
/// The result for an item with a label.
public protocol LabellableSecureStorableResultType: LabellableSecureStorable, SecureStorableResultType {}
/// The result for an item with a type.
public protocol TypeDesignatableSecureStorableResultType: TypeDesignatableSecureStorable, SecureStorableResultType {}
/// The result for an item that can be invisible.
public protocol IsInvisibleAssignableSecureStorableResultType: IsInvisibleAssignableSecureStorable, SecureStorableResultType {}
/// The result for an item that can be a placeholder for a password that is not stored.
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
    /// The lock states in which the item can be read and written.
    public var accessible: LocksmithAccessibleOption? { text(kSecAttrAccessible).flatMap(LocksmithAccessibleOption.init) }
    /// The access group.
    public var accessGroup: String? { text(kSecAttrAccessGroup) }

    func text(_ attribute: CFString) -> String? { resultDictionary[attribute as String] as? String }

    func data(_ attribute: CFString) -> Data? { resultDictionary[attribute as String] as? Data }

    func flag(_ attribute: CFString) -> Bool? { (resultDictionary[attribute as String] as? NSNumber)?.boolValue }

    /// Returns nil for a number that the type cannot represent.
    func number<Number: BinaryInteger>(_ attribute: CFString) -> Number? {
        (resultDictionary[attribute as String] as? NSNumber).flatMap { Int64(exactly: $0) }.flatMap { Number(exactly: $0) }
    }
}

extension DescribableSecureStorableResultType {
    /// The kind of the item, for people.
    public var description: String? { text(kSecAttrDescription) }
}

extension CommentableSecureStorableResultType {
    /// A comment for people.
    public var comment: String? { text(kSecAttrComment) }
}

extension CreatorDesignatableSecureStorableResultType {
    /// The number of the creator.
    public var creator: UInt? { number(kSecAttrCreator) }
}

extension LabellableSecureStorableResultType {
    /// The name that users see.
    public var label: String? { text(kSecAttrLabel) }
}

extension TypeDesignatableSecureStorableResultType {
    /// The number of its type.
    public var type: UInt? { number(kSecAttrType) }
}

extension IsInvisibleAssignableSecureStorableResultType {
    /// Whether the item should be hidden from users.
    public var isInvisible: Bool? { flag(kSecAttrIsInvisible) }
}

extension IsNegativeAssignableSecureStorableResultType {
    /// Whether the item is a placeholder for a password that the user enters each time.
    public var isNegative: Bool? { flag(kSecAttrIsNegative) }
}

extension GenericPasswordSecureStorableResultType {
    /// Bytes that the program defines.
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
/// `@unchecked Sendable`: the compiler cannot verify dictionaries of `Any`, but their contents never change. The keychain and the archive
/// contain immutable values only, and a program's own closure must not change objects that it has returned.
struct GenericPasswordResult: GenericPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    let account: String
    let service: String
    /// The attribute in the type of Locksmith 4.0.
    var generic: NSData? { data(kSecAttrGeneric).map { NSData(data: $0) } }

    /// - Throws: ``LocksmithError/decode`` if an attribute has another type in the response.
    init(of password: some GenericPasswordSecureStorable, _ found: FoundItem) throws(LocksmithError) {
        resultDictionary = found.attributes
        data = found.data
        account = try found.text(kSecAttrAccount, defaultingTo: password.account)
        service = try found.text(kSecAttrService, defaultingTo: password.service)
    }
}

/// An internet password that was read.
///
/// `@unchecked Sendable`: as for `GenericPasswordResult`.
struct InternetPasswordResult: InternetPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    let account: String
    let authenticationType: LocksmithInternetAuthenticationType
    let internetProtocol: LocksmithInternetProtocol
    let port: Int
    let server: String

    /// - Throws: ``LocksmithError/decode`` if an attribute has another type in the response.
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

/// A description without contents, so that printing a result does not reveal its secret.
extension GenericPasswordResult: CustomDebugStringConvertible, CustomReflectable {
    var debugDescription: String { "a generic password" }
    var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension InternetPasswordResult: CustomDebugStringConvertible, CustomReflectable {
    var debugDescription: String { "an internet password" }
    var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// An item that a read request found.
struct FoundItem {
    let attributes: [String: Any]
    /// The data; nil if the item has no value.
    let data: [String: Any]?

    /// Returns an attribute in its type.
    ///
    /// The keychain always returns the attributes of the primary key. If a type's own closure leaves one out, the value of the request is
    /// used.
    func value<Value>(_ attribute: CFString, defaultingTo requested: Value, _ read: (Any) -> Value?) throws(LocksmithError) -> Value {
        guard let stored = attributes[attribute as String] else { return requested }
        guard let value = read(stored) else { throw .unreadableValue }
        return value
    }

    func text(_ attribute: CFString, defaultingTo requested: String) throws(LocksmithError) -> String {
        try value(attribute, defaultingTo: requested, Self.text)
    }

    /// Returns the text of an attribute; nil if it is none.
    ///
    /// A search compares bytes, so it also finds items that another library has stored with data in place of text.
    static func text(_ attribute: Any) -> String? {
        if let text = attribute as? String { return text }
        guard let data = attribute as? Data, String(data: data, encoding: .utf8) != nil else { return nil }
        // Not the string of Foundation, which lacks a byte order mark.
        return String(decoding: data, as: UTF8.self)
    }
}
