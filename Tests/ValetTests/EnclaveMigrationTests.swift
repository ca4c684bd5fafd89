// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import ServedKeychain
import Testing
@testable import Valet

@Suite("Migrating values with access control", .keychain(accessGroups: testAccessGroups))
struct EnclaveMigrationTests {
    private func plainSource() throws -> Valet {
        let source = try valet("source", .whenPasscodeSetThisDeviceOnly)
        try source.setString("12345", forKey: "Skroob")
        try source.setString("2", forKey: "Helmet")
        #expect(source.canAccessKeychain())
        return source
    }

    @Test("Migrating into a Secure Enclave valet does not prompt", arguments: [true, false])
    func intoEnclave(removing: Bool) throws {
        let keychain = try keychainWithPasscode()
        let source = try plainSource()
        let destination = try enclaveValet("destination")
        try destination.migrateObjects(from: source, removeOnCompletion: removing)
        #expect(keychain.person.questions.isEmpty)
        #expect(try source.allKeys() == (removing ? [] : ["Skroob", "Helmet"]))
        keychain.person.answers(.correctPasscode, times: 2)
        #expect(try destination.string(forKey: "Skroob") == "12345")
        #expect(try destination.string(forKey: "Helmet") == "2")
    }

    @Test("Any items can be migrated into a single prompt valet")
    func intoSinglePrompt() throws {
        let keychain = try keychainWithPasscode()
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345")) == errSecSuccess)
        let destination = try singlePromptValet("migration into single prompt")
        try destination.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode)
        #expect(try destination.allKeys(userPrompt: "") == ["Skroob"])
        #expect(try destination.string(forKey: "Skroob", withPrompt: "") == "12345")
        #expect(throws: KeychainError.itemNotFound) {
            try destination.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        }
    }

    @Test("Migrating from the single prompt valet of the same name prompts once", arguments: [true, false])
    func fromSinglePrompt(removing: Bool) throws {
        let keychain = try keychainWithPasscode()
        let source = try singlePromptValet("migrated \(removing)")
        let destination = try enclaveValet("migrated \(removing)")
        try source.setString("12345", forKey: "Skroob")
        try source.setString("2", forKey: "Helmet")
        try singlePromptValet("migrated \(removing)", .devicePasscode).setString("3", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        try destination.migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: removing)
        #expect(keychain.person.questions.count == 1)
        for key in ["Skroob", "Helmet"] {
            #expect(try source.containsObject(forKey: key) != removing)
            #expect(try destination.containsObject(forKey: key))
        }
        keychain.person.answers(.correctPasscode)
        #expect(try destination.string(forKey: "Skroob") == "12345")
    }

    @Test("Canceling changes nothing, and a source without values is not found")
    func cancelled() throws {
        let keychain = try keychainWithPasscode()
        let source = try singlePromptValet("cancelled migration")
        let destination = try enclaveValet("cancelled migration")
        #expect(throws: KeychainError.itemNotFound) {
            try destination.migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: true)
        }
        try source.setString("12345", forKey: "Skroob")
        keychain.person.answers(.cancel)
        #expect(throws: KeychainError.userCancelled) {
            try destination.migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: true)
        }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try destination.migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: true)
        }
        #expect(try source.containsObject(forKey: "Skroob"))
        #expect(try !destination.containsObject(forKey: "Skroob"))
    }

    @Test(
        "Migrating into a plain valet prompts once, with the context or the text of the query", arguments: ["context", "text", "neither"])
    func intoPlainValet(prompt: String) throws {
        let keychain = try keychainWithPasscode()
        let source = try enclaveValet("out")
        try source.setString("12345", forKey: "Skroob")
        try source.setString("2", forKey: "Helmet")
        let destination = try valet("in")
        let context = LAContext()
        context.localizedReason = "take it out"
        keychain.person.answers(.correctPasscode)
        let options: [String: AnyHashable] =
            switch prompt {
            case "context": [kSecUseAuthenticationContext as String: context]
            case "text": ["u_OpPrompt": "take it out"]
            default: [:]
            }
        let items = query(
            service: "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_out_AccessibleWhenPasscodeSetThisDeviceOnly", options)
        try destination.migrateObjects(matching: items, removeOnCompletion: true)
        #expect(keychain.person.questions.map(\.reason) == [prompt == "neither" ? nil : "take it out"])
        #expect(try destination.allKeys() == ["Skroob", "Helmet"])
        #expect(try destination.string(forKey: "Skroob") == "12345")
        #expect(try !source.containsObject(forKey: "Skroob"))
    }

    @Test("An existing key fails the migration before any write and without a prompt")
    func keyIsThere() throws {
        let keychain = try keychainWithPasscode()
        let source = try plainSource()
        let destination = try enclaveValet("destination")
        try destination.setString("mine", forKey: "Helmet")
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) {
            try destination.migrateObjects(from: source, removeOnCompletion: true)
        }
        #expect(try !destination.containsObject(forKey: "Skroob"))
        #expect(try source.allKeys() == ["Skroob", "Helmet"])
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("Without a passcode nothing is migrated")
    func noPasscode() throws {
        let source = try valet("source")
        try source.setString("12345", forKey: "Skroob")
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try enclaveValet("destination").migrateObjects(from: source, removeOnCompletion: true)
        }
        #expect(try source.string(forKey: "Skroob") == "12345")
    }

    @Test("A rollback removes a copy after a prompt, unless another program changed it or no prompt can be shown")
    func rollback() throws {
        let keychain = try keychainWithPasscode()
        let source = try plainSource()
        let destination = try enclaveValet("undone")
        func migrateAndUndo(_ meanwhile: () throws -> Void = {}) throws {
            var journal = MigrationJournal(destination: destination.keychain.values, .once("undo"))
            for item in try MigrationQuery(source.keychain.items).readItems() where item.account != AnyHashable(Canary.key) {
                let key = try #require(item.account as? String)
                try journal.write(
                    PlannedCopy(original: item, key: key, value: try #require(item.value)), removingOriginal: true)
            }
            keychain.clock.advance(by: .seconds(1))
            try meanwhile()
            journal.undo()
        }
        keychain.person.answers(.correctPasscode)
        try migrateAndUndo()
        #expect(keychain.person.questions.count == 1)
        #expect(try !destination.containsObject(forKey: "Skroob"))
        #expect(try !destination.containsObject(forKey: "Helmet"))
        keychain.person.answers(.correctPasscode)
        try migrateAndUndo { try destination.setString("theirs", forKey: "Skroob") }
        #expect(try !destination.containsObject(forKey: "Helmet"))
        keychain.person.answers(.correctPasscode)
        #expect(try destination.string(forKey: "Skroob") == "theirs")
        try destination.removeAllObjects()
        try migrateAndUndo()
        #expect(try destination.containsObject(forKey: "Skroob"))
        #expect(try source.allKeys() == ["Skroob", "Helmet"])
    }
}

/// Other versions of Valet find items by exactly these attributes, so they are written out here and not computed.
@Suite("Attributes of items with access control", .keychain(accessGroups: testAccessGroups))
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

    @Test("The service contains the name of the biometric access control")
    func biometry() throws {
        let name = ValetName.identifier(try identifier("Druidia"))
        let prefix = "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenPasscodeSetThisDeviceOnly"
        #expect(
            name.service(kind: .secureEnclave, protection: SecureEnclaveProtection(.biometricAny))
                == prefix + "_AccessControlTouchIDAnyFingerprint")
        #expect(
            name.service(kind: .secureEnclave, protection: SecureEnclaveProtection(.biometricCurrentSet))
                == prefix + "_AccessControlTouchIDCurrentFingerprintSet")
    }

    @Test("Replaced and migrated values have the same attributes as new ones")
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

    @Test("The canary is an item without access control, in the namespace of a plain valet")
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

    /// Stores a value under "Skroob", and reads the item without the valet.
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
        // The pointer is nil.
        let accessControl = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, flags, nil)
        #expect(item[kSecAttrAccessControl as String] as? SecAccessControl == accessControl)
        #expect(item[kSecAttrAccessGroup as String] as? String == group ?? testAccessGroups[0])
        // The only prompt is for the read without the valet: storing does not prompt.
        #expect(keychain.person.remainingAnswerCount == 0)
        let query: [String: Any] = [kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: service]
        #expect(SecItemDelete(query as CFDictionary) == errSecSuccess)
    }
}
#endif
