// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

/// Rows of the article "Differences from Apple" that require a complete keychain to test.
@Suite("Deliberate differences from Apple's keychain", .inMemoryKeychain)
struct DifferencesFromAppleTests {
    private func add(_ attributes: [CFString: Any]) -> OSStatus {
        SecItemAdd(attributes.merging([kSecClass: kSecClassGenericPassword]) { given, _ in given } as CFDictionary, nil)
    }

    private func accounts(_ query: [CFString: Any]) -> [String]? {
        let all: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
        ]
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query.merging(all) { given, _ in given } as CFDictionary, &result)
        guard status == errSecSuccess else { return status == errSecItemNotFound ? [] : nil }
        return (result as? [[String: Any]])?.compactMap { $0[kSecAttrAccount as String] as? String }
    }

    @Test("The limit counts the items that pass all filters")
    func limitAfterFilters() {
        for server in ["example.org", "www.example.net", "www.example.com"] {
            #expect(add([kSecClass: kSecClassInternetPassword, kSecAttrServer: server, kSecAttrAccount: server]) == errSecSuccess)
        }
        let query: [CFString: Any] = [
            kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: "example.com", kSecMatchLimit: kSecMatchLimitOne,
            kSecReturnAttributes: true,
        ]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect((result as? [String: Any])?[kSecAttrServer as String] as? String == "www.example.com")
    }

    @Test("The oldest item comes first")
    func oldestFirst() {
        for account in ["m", "z", "a"] { #expect(add([kSecAttrAccount: account, kSecAttrService: "luggage"]) == errSecSuccess) }
        #expect(accounts([kSecAttrService: "luggage"]) == ["m", "z", "a"])
    }

    @Test("An update that would give several items the same primary key changes none of them")
    func collisionWithinOneUpdate() {
        for account in ["a", "b"] { #expect(add([kSecAttrAccount: account, kSecAttrService: "luggage"]) == errSecSuccess) }
        let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "luggage"]
        #expect(SecItemUpdate(query as CFDictionary, [kSecAttrAccount: "c"] as CFDictionary) == errSecDuplicateItem)
        #expect(accounts([kSecAttrService: "luggage"]) == ["a", "b"])
    }

    @Test("An access control without flags is equal to the accessibility alone")
    func accessControlOfNoFlags() throws {
        let accessControl = try #require(SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleAfterFirstUnlock, [], nil))
        #expect(add([kSecAttrAccount: "Skroob", kSecAttrAccessControl: accessControl]) == errSecSuccess)
        let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        var attributes = try #require(result as? [String: Any])
        #expect(attributes[kSecAttrAccessControl as String] as? SecAccessControl == accessControl)
        #expect(attributes[kSecAttrAccessible as String] as? String == kSecAttrAccessibleAfterFirstUnlock as String)
        attributes[kSecClass as String] = kSecClassGenericPassword
        #expect(SecItemCopyMatching(attributes as CFDictionary, nil) == errSecSuccess)
    }
}
