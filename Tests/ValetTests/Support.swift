// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing
import Valet

/// Items as other programs write and read them, without a valet.
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

    /// The observable state of the whole keychain: the item of each value, and whether items were replaced.
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

func identifier(_ name: String) throws -> Identifier {
    try #require(Identifier(nonEmpty: name))
}

func valet(_ name: String = "Druidia", _ accessibility: Accessibility = .whenUnlocked) throws -> Valet {
    Valet.valet(with: try identifier(name), accessibility: accessibility)
}

func explicitValet(_ name: String = "Druidia", _ accessibility: Accessibility) throws -> Valet {
    Valet.valet(withExplicitlySet: try identifier(name), accessibility: accessibility)
}

func enclaveValet(_ name: String = "Druidia", _ accessControl: SecureEnclaveAccessControl = .userPresence) throws -> SecureEnclaveValet {
    SecureEnclaveValet.valet(with: try identifier(name), accessControl: accessControl)
}

func singlePromptValet(
    _ name: String = "Druidia", _ accessControl: SecureEnclaveAccessControl = .userPresence
) throws -> SinglePromptSecureEnclaveValet {
    SinglePromptSecureEnclaveValet.valet(with: try identifier(name), accessControl: accessControl)
}

#if !canImport(Darwin)
import KeychainTesting

/// The keychain of the test, with a passcode set.
func keychainWithPasscode() throws -> InMemoryKeychain {
    let keychain = try #require(InMemoryKeychain.current)
    try keychain.setPasscode("swordfish")
    return keychain
}
#endif

/// A group that the entitlements of the keychain under test list.
func sharedGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia"))
}

/// A group that they do not list.
func foreignGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Spaceball"))
}

/// The access groups of the program under test.
///
/// New items without an access group get the first one.
let testAccessGroups = ["AppID12345.Own", "AppID12345.Druidia", "group.Druidia"]
