// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

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
        account = try found.text(kSecAttrAccount, ifSilent: password.account)
        service = try found.text(kSecAttrService, ifSilent: password.service)
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
        account = try found.text(kSecAttrAccount, ifSilent: password.account)
        server = try found.text(kSecAttrServer, ifSilent: password.server)
        port = try found.value(kSecAttrPort, ifSilent: password.port) { ($0 as? NSNumber).flatMap(Int.init(exactly:)) }
        internetProtocol = try found.value(kSecAttrProtocol, ifSilent: password.internetProtocol) {
            ($0 as? String).flatMap(LocksmithInternetProtocol.init)
        }
        authenticationType = try found.value(kSecAttrAuthenticationType, ifSilent: password.authenticationType) {
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
    func value<Value>(_ attribute: CFString, ifSilent asked: Value, _ read: (Any) -> Value?) throws(LocksmithError) -> Value {
        guard let stored = attributes[attribute as String] else { return asked }
        guard let value = read(stored) else { throw .foreign }
        return value
    }

    func text(_ attribute: CFString, ifSilent asked: String) throws(LocksmithError) -> String {
        try value(attribute, ifSilent: asked) { $0 as? String }
    }
}
