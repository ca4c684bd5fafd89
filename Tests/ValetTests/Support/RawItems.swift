// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing

/// Items as other programs write and see them, past any valet.
enum RawItems {
    static func add(account: Any?, service: String, value: Data?, _ more: [String: Any] = [:]) -> OSStatus {
        var attributes = more
        attributes[kSecClass as String] = kSecClassGenericPassword as String
        attributes[kSecAttrService as String] = service
        attributes[kSecAttrAccount as String] = account
        attributes[kSecValueData as String] = value
        return SecItemAdd(attributes as CFDictionary, nil)
    }

    /// Attributes, value and persistent reference of every generic password, local or synchronizable.
    static func all() throws -> [[String: Any]] {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrSynchronizable as String: kSecAttrSynchronizableAny as String,
            kSecMatchLimit as String: kSecMatchLimitAll as String,
            kSecReturnAttributes as String: true,
            kSecReturnData as String: true,
            kSecReturnPersistentRef as String: true,
        ]
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        try #require(status == errSecSuccess)
        return try #require(result as? [[String: Any]])
    }

    static func only() throws -> [String: Any] {
        let items = try all()
        try #require(items.count == 1)
        return items[0]
    }

    static func remove(account: String, service: String) -> OSStatus {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
        ]
        return SecItemDelete(query as CFDictionary)
    }

    static func setValue(_ value: Data, account: String, service: String) -> OSStatus {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
        ]
        return SecItemUpdate(query as CFDictionary, [kSecValueData as String: value] as CFDictionary)
    }

    /// What an observer can tell of the whole keychain: where each value is, and that no item was made anew.
    static func fingerprint() throws -> Set<[String]> {
        let observed = [
            kSecAttrService, kSecAttrAccount, kSecAttrAccessible, kSecAttrAccessGroup, kSecAttrLabel, kSecValueData, kSecValuePersistentRef,
        ]
        return Set(try all().map { item in observed.map { key in item[key as String].map(describe) ?? "-" } })
    }

    private static func describe(_ value: Any) -> String {
        if let data = value as? Data { return data.base64EncodedString() }
        return String(describing: value)
    }
}

/// The query that finds the items of one service, for migrations.
func query(service: String, _ more: [String: AnyHashable] = [:]) -> [String: AnyHashable] {
    var query: [String: AnyHashable] = [
        kSecClass as String: kSecClassGenericPassword as String,
        kSecAttrService as String: service,
    ]
    query.merge(more) { _, new in new }
    return query
}

func bytes(_ text: String) -> Data { Data(text.utf8) }
