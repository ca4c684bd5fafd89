// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet

/// Stores or reads through the public functions only, like a program under test.
private enum Program {
    static func store(_ value: String, account: String = "account") -> OSStatus {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: account,
            kSecValueData as String: Data(value.utf8),
        ]
        return SecItemAdd(item as CFDictionary, nil)
    }

    static func read(account: String = "account") -> (status: OSStatus, value: String?) {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: account, kSecReturnData as String: true,
        ]
        var result: CFTypeRef?
        // The pointer is read during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        return (status, (result as? Data).map { String(decoding: $0, as: UTF8.self) })
    }
}

@Suite("A scope with an in-memory keychain")
struct InMemoryKeychainTests {
    @Test("A stored value can be read in its scope, and is discarded with the scope")
    func storesAndForgets() throws {
        try withInMemoryKeychain {
            #expect(Program.store("secret") == errSecSuccess)
            #expect(Program.read().value == "secret")
        }
        try withInMemoryKeychain {
            #expect(Program.read().status == errSecItemNotFound)
        }
    }

    @Test("A call outside every scope is rejected and does not reach the user's keychain")
    func refusesOutside() {
        #expect(Program.store("secret") == errSecNotAvailable)
        #expect(Program.read().status == errSecNotAvailable)
    }

    @Test("A detached task is outside the scope until perform carries the scope there")
    func detachedTask() async throws {
        try await withInMemoryKeychain {
            #expect(Program.store("secret") == errSecSuccess)
            let keychain = try #require(InMemoryKeychain.current)
            let outside = await Task.detached { Program.read().status }.value
            let carried = await Task.detached { keychain.perform { Program.read().value } }.value
            #expect(outside == errSecNotAvailable)
            #expect(carried == "secret")
        }
    }

    @Test("A child task is inside the scope")
    func childTask() async throws {
        try await withInMemoryKeychain {
            #expect(Program.store("secret") == errSecSuccess)
            async let value = Program.read().value
            #expect(await value == "secret")
            #expect(await Task { Program.read().value }.value == "secret")
        }
    }

    @Test("A Dispatch queue is outside the scope until perform carries the scope there")
    func dispatchQueue() async throws {
        try await withInMemoryKeychain {
            #expect(Program.store("secret") == errSecSuccess)
            let keychain = try #require(InMemoryKeychain.current)
            let values = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(returning: (Program.read().status, keychain.perform { Program.read().value }))
                }
            }
            #expect(values.0 == errSecNotAvailable)
            #expect(values.1 == "secret")
        }
    }

    @Test("An inner scope has its own keychain; after it, the outer keychain is used again")
    func nested() throws {
        try withInMemoryKeychain {
            #expect(Program.store("outer") == errSecSuccess)
            try withInMemoryKeychain {
                #expect(Program.read().status == errSecItemNotFound)
                #expect(Program.store("inner") == errSecSuccess)
            }
            #expect(Program.read().value == "outer")
        }
    }

    @Test("An access group can be used only once it is granted to the program")
    func accessGroups() throws {
        let group = try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia"))
        let valet = Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked)
        try withInMemoryKeychain {
            _ = #expect(throws: KeychainError.missingEntitlement) { try valet.setString("12345", forKey: "Skroob") }
        }
        try withInMemoryKeychain(accessGroups: ["AppID12345.Druidia"]) {
            try valet.setString("12345", forKey: "Skroob")
            #expect(try valet.string(forKey: "Skroob") == "12345")
        }
    }
}

@Suite("The trait gives each test its own keychain", .inMemoryKeychain)
struct InMemoryKeychainTraitTests {
    @Test("Tests do not share items", arguments: 0..<20)
    func isolated(round: Int) {
        #expect(Program.store("round \(round)") == errSecSuccess)
        #expect(Program.read().value == "round \(round)")
    }

    @Test("A trait on the test gives it access groups", .inMemoryKeychain(accessGroups: ["AppID12345.Druidia"]))
    func withGroups() throws {
        let group = try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia"))
        #expect(Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked).canAccessKeychain())
    }
}
