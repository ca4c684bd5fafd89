// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

@Suite("Whether the keychain can be used", .inMemoryKeychain(accessGroups: testAccessGroups))
struct AccessTests {
    @Test("The canary is written once and is a plain item of the valet")
    func canary() throws {
        let valet = try valet()
        #expect(valet.canAccessKeychain())
        let first = try RawItems.only()
        #expect(first[kSecAttrAccount as String] as? String == "VAL_KeychainCanaryUsername")
        #expect(first[kSecValueData as String] as? Data == bytes("VAL_KeychainCanaryPassword"))
        #expect(valet.canAccessKeychain())
        let second = try RawItems.only()
        #expect(second[kSecAttrModificationDate as String] as? Date == first[kSecAttrModificationDate as String] as? Date)
    }

    @Test("The canary is no key")
    func canaryIsNoKey() throws {
        let valet = try valet()
        #expect(valet.canAccessKeychain())
        #expect(try valet.allKeys().isEmpty)
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.allKeys() == ["Skroob"])
    }

    @Test("Removing everything removes the canary too, and it is written again when asked for")
    func canaryIsRemoved() throws {
        let valet = try valet()
        #expect(valet.canAccessKeychain())
        try valet.removeAllObjects()
        #expect(try RawItems.all().isEmpty)
        #expect(valet.canAccessKeychain())
    }

    @Test("Without a passcode nothing can be kept that needs one")
    func noPasscode() throws {
        let valet = try valet("Druidia", .whenPasscodeSetThisDeviceOnly)
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(try !valet.containsObject(forKey: "Skroob"))
        #expect(try RawItems.all().isEmpty)
    }

    @Test("A group that the entitlements do not list is a missing entitlement, for every call")
    func missingEntitlement() throws {
        let valet = Valet.sharedGroupValet(with: try foreignGroup(), accessibility: .whenUnlocked)
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.missingEntitlement) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.string(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.containsObject(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.allKeys() }
        #expect(throws: KeychainError.missingEntitlement) { try valet.removeObject(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.removeAllObjects() }
    }
}

#if os(Linux)
@Suite("A keychain that cannot be reached")
struct UnreachableKeychainTests {
    // No keychain is bound to this suite, and a process under test never reaches the user's own.
    @Test("is never taken for an empty one")
    func unreachable() throws {
        let valet = try valet()
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.containsObject(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.allKeys() }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.removeObject(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.removeAllObjects() }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try valet.migrateObjects(matching: query(service: "any"), removeOnCompletion: true)
        }
    }
}
#endif
