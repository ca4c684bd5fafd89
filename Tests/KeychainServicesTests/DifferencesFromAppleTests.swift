// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

/// Rows of the article "Differences from Apple" that take a whole keychain to show.
@Suite("Where the keychain differs from Apple's on purpose", .inMemoryKeychain)
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

    @Test("The limit counts what is left after the filters")
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

    @Test("Items that one update would give the same primary key stay as they are, all of them")
    func collisionWithinOneUpdate() {
        for account in ["a", "b"] { #expect(add([kSecAttrAccount: account, kSecAttrService: "luggage"]) == errSecSuccess) }
        let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "luggage"]
        #expect(SecItemUpdate(query as CFDictionary, [kSecAttrAccount: "c"] as CFDictionary) == errSecDuplicateItem)
        #expect(accounts([kSecAttrService: "luggage"]) == ["a", "b"])
    }

    @Test("An access control of no flags protects like the accessibility alone, and is read back as such")
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
