// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Locksmith
import Testing

/// The attributes that are read of both kinds of passwords.
typealias PasswordResult = AccountBasedSecureStorableResultType & DescribableSecureStorableResultType
    & CommentableSecureStorableResultType & CreatorDesignatableSecureStorableResultType & TypeDesignatableSecureStorableResultType
    & IsInvisibleAssignableSecureStorableResultType & IsNegativeAssignableSecureStorableResultType

/// A password with all attributes that both kinds have.
protocol Password: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, Sendable {
    var account: String { get set }
    var accessible: LocksmithAccessibleOption? { get set }
    var accessGroup: String? { get set }
    var comment: String? { get set }
    var creator: UInt? { get set }
    var description: String? { get set }
    var isInvisible: Bool? { get set }
    var isNegative: Bool? { get set }
    var type: UInt? { get set }
    /// An attribute that the read request omits, so the value can come only from the result.
    var unasked: String? { get set }

    func readPassword() throws -> PasswordResult?
}

extension Password {
    var performReadRequestClosure: PerformRequestClosureType {
        { request, result in
            var request = request
            if let unasked { request[unasked] = nil }
            return performDefault(request, &result)
        }
    }

    private var performDefault: PerformRequestClosureType { Plain().performReadRequestClosure }
}

/// The default implementation of reading.
private struct Plain: ReadableSecureStorable {}

/// A generic password with all attributes.
struct GenericPassword: GenericPasswordSecureStorable, Password {
    var account = "Skroob"
    var service = "Druidia"
    var secret = "12345"
    var data: [String: Any] { ["secret": secret] }

    var accessible: LocksmithAccessibleOption?
    var accessGroup: String?
    var comment: String?
    var creator: UInt?
    var description: String?
    var generic: Data?
    var isInvisible: Bool?
    var isNegative: Bool?
    var label: String?
    var type: UInt?
    var unasked: String?

    func readPassword() throws -> PasswordResult? { try tryReadFromSecureStore() as GenericPasswordSecureStorableResultType? }
}

/// An internet password with all attributes.
struct InternetPassword: InternetPasswordSecureStorable, Password {
    var account = "Skroob"
    var authenticationType = LocksmithInternetAuthenticationType.httpBasic
    var internetProtocol = LocksmithInternetProtocol.https
    var port = 443
    var server = "druidia.example"
    var secret = "12345"
    var data: [String: Any] { ["secret": secret] }

    var accessible: LocksmithAccessibleOption?
    var accessGroup: String?
    var comment: String?
    var creator: UInt?
    var description: String?
    var isInvisible: Bool?
    var isNegative: Bool?
    var path: String?
    var securityDomain: String?
    var type: UInt?
    var unasked: String?

    func readPassword() throws -> PasswordResult? { try tryReadFromSecureStore() as InternetPasswordSecureStorableResultType? }
}

/// Items as other programs write and read them, without this library.
enum RawItems {
    static func add(_ attributes: [String: Any], itemClass: String = kSecClassGenericPassword as String) -> OSStatus {
        var attributes = attributes
        attributes[kSecClass as String] = itemClass
        return SecItemAdd(attributes as CFDictionary, nil)
    }

    /// Attributes and values of every password of a class.
    static func all(itemClass: String = kSecClassGenericPassword as String) throws -> [[String: Any]] {
        let query: [String: Any] = [
            kSecClass as String: itemClass,
            kSecMatchLimit as String: kSecMatchLimitAll as String,
            kSecReturnAttributes as String: true,
            kSecReturnData as String: true,
        ]
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        try #require(status == errSecSuccess)
        return try #require(result as? [[String: Any]])
    }

    static func only(itemClass: String = kSecClassGenericPassword as String) throws -> [String: Any] {
        let items = try all(itemClass: itemClass)
        try #require(items.count == 1)
        return items[0]
    }
}
