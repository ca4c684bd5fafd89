// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@testable import Valet

/// Other versions of Valet find items by exactly these attributes, so they are written out here and not computed.
@Suite("What a valet writes into items that a person has to release", .inMemoryKeychain(accessGroups: testAccessGroups))
struct EnclaveStoredAttributeTests {
    private static let flags: [(SecureEnclaveAccessControl, SecAccessControlCreateFlags)] = [
        (.userPresence, .userPresence), (.devicePasscode, .devicePasscode),
    ]

    @Test("A Secure Enclave valet")
    func secureEnclave() throws {
        let name = "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly"
        for (accessControl, flags) in Self.flags {
            let suffix = accessControl == .userPresence ? "" : "_AccessControlDevicePasscode"
            let valet = try enclaveValet("Druidia", accessControl)
            try check(service: name + suffix, group: nil, flags) { try valet.setString("12345", forKey: "Skroob") }
        }
    }

    @Test("A single prompt valet")
    func singlePrompt() throws {
        let name = "VAL_VALSinglePromptSecureEnclaveValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly"
        for (accessControl, flags) in Self.flags {
            let suffix = accessControl == .userPresence ? "" : "_AccessControlDevicePasscode"
            let valet = try singlePromptValet("Druidia", accessControl)
            try check(service: name + suffix, group: nil, flags) { try valet.setString("12345", forKey: "Skroob") }
        }
    }

    @Test("Shared group valets, with and without an identifier")
    func sharedGroups() throws {
        let group = try sharedGroup()
        let skroob = try identifier("Skroob")
        let enclave = SecureEnclaveValet.sharedGroupValet(with: group, accessControl: .userPresence)
        try check(
            service: "VAL_VALSecureEnclaveValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_"
                + "AccessibleWhenPasscodeSetThisDeviceOnly",
            group: "AppID12345.Druidia", .userPresence
        ) { try enclave.setString("12345", forKey: "Skroob") }
        let named = SecureEnclaveValet.sharedGroupValet(with: group, identifier: skroob, accessControl: .devicePasscode)
        try check(
            service: "VAL_VALSecureEnclaveValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_Skroob_"
                + "AccessibleWhenPasscodeSetThisDeviceOnly_AccessControlDevicePasscode",
            group: "AppID12345.Druidia", .devicePasscode
        ) { try named.setString("12345", forKey: "Skroob") }
        let single = SinglePromptSecureEnclaveValet.sharedGroupValet(with: group, identifier: skroob, accessControl: .userPresence)
        try check(
            service: "VAL_VALSinglePromptSecureEnclaveValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_Skroob_"
                + "AccessibleWhenPasscodeSetThisDeviceOnly",
            group: "AppID12345.Druidia", .userPresence
        ) { try single.setString("12345", forKey: "Skroob") }
    }

    @Test("Biometry stands in the service too, under the names of the first finger readers")
    func biometry() throws {
        let name = SandboxName.identifier(try identifier("Druidia"))
        let prefix = "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly"
        #expect(
            name.service(kind: .secureEnclave, protection: EnclaveProtection(.biometricAny))
                == prefix + "_AccessControlTouchIDAnyFingerprint")
        #expect(
            name.service(kind: .secureEnclave, protection: EnclaveProtection(.biometricCurrentSet))
                == prefix + "_AccessControlTouchIDCurrentFingerprintSet")
    }

    @Test("The same attributes after a value was stored over another, and when a value was migrated")
    func laterWrites() throws {
        let service = "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly"
        let valet = try enclaveValet()
        try check(service: service, group: nil, .userPresence) {
            try valet.setString("first", forKey: "Skroob")
            try valet.setString("12345", forKey: "Skroob")
        }
        let plain = try Valet.valet(with: identifier("Druidia"), accessibility: .whenUnlocked)
        try check(service: service, group: nil, .userPresence) {
            try plain.setString("12345", forKey: "Skroob")
            try valet.migrateObjects(from: plain, removeOnCompletion: true)
        }
    }

    @Test("The canary is an item that nobody has to release, where a plain valet would keep it")
    func canary() throws {
        let keychain = try keychainWithPasscode()
        #expect(try enclaveValet().canAccessKeychain())
        #expect(try singlePromptValet().canAccessKeychain())
        let item = try RawItems.only()
        #expect(
            item[kSecAttrService as String] as? String
                == "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly")
        #expect(item[kSecAttrAccount as String] as? String == "VAL_KeychainCanaryUsername")
        #expect(keychain.person.questions.isEmpty)
    }

    /// Stores a value under "Skroob", and looks at the item past the valet.
    private func check(
        service: String, group: String?, _ flags: SecAccessControlCreateFlags, afterStoring store: () throws -> Void
    ) throws {
        let keychain = try keychainWithPasscode()
        try store()
        keychain.person.answers(.correctPasscode)
        let item = try RawItems.only()
        #expect(item[kSecAttrService as String] as? String == service)
        #expect(item[kSecAttrAccount as String] as? String == "Skroob")
        #expect(item[kSecValueData as String] as? Data == bytes("12345"))
        #expect(item[kSecAttrAccessible as String] as? String == kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String)
        #expect((item[kSecAttrSynchronizable as String] as? NSNumber)?.boolValue != true)
        // No pointer is given.
        let accessControl = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, flags, nil)
        #expect(item[kSecAttrAccessControl as String] as? SecAccessControl == accessControl)
        #expect(item[kSecAttrAccessGroup as String] as? String == group ?? testAccessGroups[0])
        // One for the look past the valet; storing asked nobody.
        #expect(keychain.person.remainingAnswerCount == 0)
        let query: [String: Any] = [kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: service]
        #expect(SecItemDelete(query as CFDictionary) == errSecSuccess)
    }
}
#endif
