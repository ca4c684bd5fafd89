// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing

/// Items as other programs write and see them, past this library.
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
