// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// The examples are the same as in the introduction, including forced unwrapping.

import Foundation
import KeychainServices
import KeychainTesting
import ServedKeychain
import Testing
import Valet


/// The examples that readers of Valet 4's introduction copy, word for word.
@Suite("Examples for users of Valet 4", .keychain(accessGroups: testAccessGroups))
struct ReadmeExamplesTests {
    @Test("Basic initialization; reading and writing")
    func basics() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)

        let username = "Skroob"
        try? myValet.setString("12345", forKey: username)
        // The introduction leaves `try?` out here, which was already wrong with Valet 4: the method throws.
        let myLuggageCombination = try? myValet.string(forKey: username)

        #expect(myLuggageCombination == "12345")
        #expect(try Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked).string(forKey: "Skroob") == "12345")
    }

    @Test("A user-friendly identifier")
    func explicitlySet() throws {
        let myValet = Valet.valet(withExplicitlySet: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)

        try myValet.setString("12345", forKey: "Skroob")
        #expect(try RawItems.only()[kSecAttrService as String] as? String == "Druidia")
    }

    @Test("Changing an accessibility value after persisting data")
    func changingAccessibility() throws {
        try Valet.valet(withExplicitlySet: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked).setString("12345", forKey: "Skroob")

        let myOldValet = Valet.valet(withExplicitlySet: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let myNewValet = Valet.valet(withExplicitlySet: Identifier(nonEmpty: "Druidia")!, accessibility: .afterFirstUnlock)
        try? myNewValet.migrateObjects(from: myOldValet, removeOnCompletion: true)

        #expect(try myNewValet.string(forKey: "Skroob") == "12345")
        #expect(try !myOldValet.containsObject(forKey: "Skroob"))
    }

    @Test("Sharing by a keychain sharing entitlement")
    func keychainSharing() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let mySharedValet = Valet.sharedGroupValet(with: SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia")!, accessibility: .whenUnlocked)

        try mySharedValet.setString("12345", forKey: "Skroob")
        #expect(try RawItems.only()[kSecAttrAccessGroup as String] as? String == "AppID12345.Druidia")
        #expect(try !myValet.containsObject(forKey: "Skroob"))
    }

    @Test("Sharing by an app groups entitlement")
    func appGroups() throws {
        let mySharedValet = Valet.sharedGroupValet(with: SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia")!, accessibility: .whenUnlocked)

        try mySharedValet.setString("12345", forKey: "Skroob")
        #expect(try RawItems.only()[kSecAttrAccessGroup as String] as? String == "group.Druidia")
    }

    @Test("Sharing across devices with iCloud")
    func iCloud() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let myCloudValet = Valet.iCloudValet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)

        try myCloudValet.setString("12345", forKey: "Skroob")
        #expect(try myCloudValet.string(forKey: "Skroob") == "12345")
        #expect(try !myValet.containsObject(forKey: "Skroob"))
    }

    #if !canImport(Darwin)
    @Test("Protecting secrets with Face ID, Touch ID, or device passcode")
    func secureEnclave() throws {
        let mySecureEnclaveValet = SecureEnclaveValet.valet(with: Identifier(nonEmpty: "Druidia")!, accessControl: .userPresence)

        // "If no passcode is set on the device, this instance will be unable to access or store data."
        #expect(!mySecureEnclaveValet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try mySecureEnclaveValet.setString("12345", forKey: "Skroob") }
        let keychain = try keychainWithPasscode()
        try mySecureEnclaveValet.setString("12345", forKey: "Skroob")
        // "Each time data is retrieved from this Valet, the user will be prompted to confirm their presence."
        keychain.person.answers(.correctPasscode, times: 2)
        #expect(try mySecureEnclaveValet.string(forKey: "Skroob", withPrompt: "Open the luggage") == "12345")
        #expect(try mySecureEnclaveValet.string(forKey: "Skroob", withPrompt: "Open the luggage") == "12345")
        #expect(keychain.person.questions.count == 2)
        // "Data is removed from the Secure Enclave when the user removes a passcode from the device."
        #expect(try KeychainSession.current().removePasscode("swordfish") { _ in true })
        #expect(try !mySecureEnclaveValet.containsObject(forKey: "Skroob"))
    }

    @Test("Protecting secrets with one prompt")
    func singlePrompt() throws {
        let mySecureEnclaveValet = SinglePromptSecureEnclaveValet.valet(with: Identifier(nonEmpty: "Druidia, read aloud")!, accessControl: .userPresence)

        let keychain = try keychainWithPasscode()
        try mySecureEnclaveValet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode, times: 2)
        #expect(try mySecureEnclaveValet.string(forKey: "Skroob", withPrompt: "Open the luggage") == "12345")
        #expect(try mySecureEnclaveValet.string(forKey: "Skroob", withPrompt: "Open the luggage") == "12345")
        #expect(keychain.person.questions.count == 1)
        mySecureEnclaveValet.requirePromptOnNextAccess()
        #expect(try mySecureEnclaveValet.string(forKey: "Skroob", withPrompt: "Open the luggage") == "12345")
        #expect(keychain.person.questions.count == 2)
    }
    #endif

    @Test("Migrating existing keychain values")
    func migrating() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        #expect(RawItems.add(account: "Skroob", service: "My own keychain code", value: bytes("12345")) == errSecSuccess)

        let query: [String : AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: "My own keychain code",
        ]
        try myValet.migrateObjects(matching: query, compactMap: { (pair: MigratableKeyValuePair<AnyHashable>) -> MigratableKeyValuePair<String>? in
            guard let key = pair.key as? String else { return nil }
            return MigratableKeyValuePair(key: "President " + key, value: pair.value)
        })
        try myValet.migrateObjects(matching: query, removeOnCompletion: true)

        #expect(try myValet.allKeys() == ["President Skroob", "Skroob"])
    }

    @Test("From before macOS Catalina, and from accessibilities of Valet 3")
    func olderValets() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)

        try? myValet.migrateObjectsFromPreCatalina()
        try? myValet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: true)
        try? myValet.migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(removeOnCompletion: true)

        #expect(myValet.canAccessKeychain())
        #expect(try myValet.allKeys().isEmpty)
    }

    @Test("From Valet 3: ignoring the error with try? returns an optional")
    func optionals() throws {
        let myValet = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let myKey = "Skroob"

        let secret: String? = try? myValet.string(forKey: myKey)

        #expect(secret == nil)
    }
}

/// Code written for Valet 4.3, where methods throw untyped errors, and for 5.1, where they throw `KeychainError`.
@Suite("Source compatibility", .keychain(accessGroups: testAccessGroups))
struct SourceCompatibilityTests {
    /// As users of 4.3 write it, where every method `throws` and errors arrive as `any Error`.
    private func untyped(_ valet: Valet) throws -> String {
        do {
            return try valet.string(forKey: "absent")
        } catch KeychainError.itemNotFound {
            return "not found"
        } catch {
            return "\(error)"
        }
    }

    /// As users of 5.1 write it: the error is a `KeychainError`, and a switch over it needs no default.
    private func typed(_ valet: Valet) -> String {
        do {
            return try valet.string(forKey: "")
        } catch {
            switch error {
            case .couldNotAccessKeychain, .userCancelled, .itemNotFound, .missingEntitlement, .emptyValue: return "other"
            case .emptyKey: return "empty key"
            }
        }
    }

    @Test("Errors are caught as in 4.3 and as in 5.1")
    func errors() throws {
        #expect(try untyped(valet()) == "not found")
        #expect(try typed(valet()) == "empty key")
        let error: any Error = KeychainError.emptyKey
        #expect((error as? KeychainError)?.rawValue == 4)
        #expect(KeychainError(rawValue: 5) == .emptyValue)
        #expect(MigrationError(rawValue: 5) == .removalFailed)
    }

    @Test("A method can be used as a throwing function value")
    func methodReferences() throws {
        let valet = try valet()
        let write: (String, String) throws -> Void = { try valet.setString($0, forKey: $1) }
        try write("12345", "Skroob")
        let read: (String) throws -> String = valet.string(forKey:)
        let readTyped: (String) throws(KeychainError) -> Data = valet.object(forKey:)
        #expect(try read("Skroob") == "12345")
        #expect(try readTyped("Skroob") == bytes("12345"))
    }

    @Test("Methods of valets that require authentication can be used as function values")
    func promptingMethodReferences() throws {
        let enclave = SecureEnclaveValet.valet(with: try identifier("references"), accessControl: .userPresence)
        let single = SinglePromptSecureEnclaveValet.valet(with: try identifier("references"), accessControl: .userPresence)
        let reads: [(String, String) throws -> String] = [enclave.string(forKey:withPrompt:), single.string(forKey:withPrompt:)]
        let readTyped: (String, String) throws(KeychainError) -> Data = single.object(forKey:withPrompt:)
        let readUnprompted: (String) throws(KeychainError) -> String = enclave.string(forKey:)
        let list: (String) throws -> Set<String> = single.allKeys(userPrompt:)
        for read in reads { #expect(throws: KeychainError.itemNotFound) { try read("absent", "please") } }
        #expect(throws: KeychainError.itemNotFound) { try readTyped("absent", "please") }
        #expect(throws: KeychainError.emptyKey) { try readUnprompted("") }
        #expect(try list("please").isEmpty)
    }

    @Test("A shared group valet without an identifier is the same instance as one with nil")
    func defaultIdentifier() throws {
        let group = try sharedGroup()
        #expect(
            Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked)
                === Valet.sharedGroupValet(with: group, identifier: nil, accessibility: .whenUnlocked))
        #expect(
            Valet.iCloudSharedGroupValet(with: group, accessibility: .whenUnlocked)
                === Valet.iCloudSharedGroupValet(with: group, identifier: nil, accessibility: .whenUnlocked))
    }

    @Test("Valets can be passed to other tasks")
    func sendable() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try valet.setString("12345", forKey: "Skroob") }
            try await group.waitForAll()
        }
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("A mapping may be a trailing closure, throw, and use what it captures")
    func mappings() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try source.setString("12345", forKey: "Skroob")
        var seen: [AnyHashable] = []
        try destination.migrateObjects(from: source) { pair in
            seen.append(pair.key)
            return MigratableKeyValuePair(key: "\(pair.key)", value: pair.value)
        }
        #expect(seen == ["Skroob"])
    }
}
