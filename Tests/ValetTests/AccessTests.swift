// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing

@testable import Valet

@Suite("Access to the keychain", .keychain(accessGroups: testAccessGroups))
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

    @Test("The canary is not listed as a key")
    func canaryIsNoKey() throws {
        let valet = try valet()
        #expect(valet.canAccessKeychain())
        #expect(try valet.allKeys().isEmpty)
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.allKeys() == ["Skroob"])
    }

    @Test("Removing all values removes the canary too, and the next access check writes it again")
    func canaryIsRemoved() throws {
        let valet = try valet()
        #expect(valet.canAccessKeychain())
        try valet.removeAllObjects()
        #expect(try RawItems.all().isEmpty)
        #expect(valet.canAccessKeychain())
    }

    @Test("Without a passcode, values that require one cannot be stored")
    func noPasscode() throws {
        let valet = try valet("Druidia", .whenPasscodeSetThisDeviceOnly)
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(try !valet.containsObject(forKey: "Skroob"))
        #expect(try RawItems.all().isEmpty)
    }

    @Test("With a group that the entitlements do not list, every call throws missingEntitlement")
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
@Suite("An unavailable keychain")
struct UnreachableKeychainTests {
    // No keychain is bound to this suite, and a process under test never reaches the user's own.
    @Test("is not reported as empty")
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

#if !canImport(Darwin)
@Suite("A valet while the keychain is locked", .keychain(accessGroups: testAccessGroups))
struct LockTests {
    private static let states: [KeychainSession.State] = [.unlocked, .locked, .neverUnlocked]

    /// Changes an unlocked keychain to a state.
    private func enter(_ state: KeychainSession.State) throws {
        let session = try KeychainSession.current()
        if try !session.isPasscodeSet { try session.setPasscode("swordfish") }
        switch state {
        case .unlocked: break
        case .locked: try session.lock()
        case .neverUnlocked: try session.lock(includingAfterFirstUnlock: true)
        }
        #expect(try session.state == state)
    }

    private func isAvailable(_ accessibility: Accessibility, in state: KeychainSession.State) -> Bool {
        switch accessibility {
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: state != .neverUnlocked
        default: state == .unlocked
        }
    }

    @Test("canAccessKeychain reflects the lock state", arguments: Accessibility.allCases, states)
    func canAccessKeychain(accessibility: Accessibility, state: KeychainSession.State) throws {
        try enter(state)
        let valet = try valet("Druidia", accessibility)
        #expect(valet.canAccessKeychain() == isAvailable(accessibility, in: state))
        try KeychainSession.current().unlock(passcode: "swordfish")
        #expect(valet.canAccessKeychain())
        try enter(state)
        #expect(valet.canAccessKeychain() == isAvailable(accessibility, in: state))
    }

    @Test(
        "canAccessKeychain of explicitly named valets reflects the lock state although the canary is that of another accessibility",
        arguments: Accessibility.allCases, states)
    func otherCanary(accessibility: Accessibility, state: KeychainSession.State) throws {
        try enter(.unlocked)
        let other = try explicitValet("Druidia", accessibility == .whenUnlocked ? .afterFirstUnlock : .whenUnlocked)
        #expect(other.canAccessKeychain())
        try enter(state)
        #expect(try explicitValet("Druidia", accessibility).canAccessKeychain() == isAvailable(accessibility, in: state))
        #expect(other.canAccessKeychain() == isAvailable(other.accessibility, in: state))
    }

    @Test("While locked, no method reports a missing value", arguments: Accessibility.allCases)
    func methods(accessibility: Accessibility) throws {
        let valet = try valet("Druidia", accessibility)
        try enter(.unlocked)
        try valet.setString("12345", forKey: "Skroob")
        try enter(.neverUnlocked)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.object(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.containsObject(forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.allKeys() }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "Helmet") }
        try KeychainSession.current().unlock(passcode: "swordfish")
        #expect(try valet.allKeys() == ["Skroob"])
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("A locked value is not migrated, and remains in its valet")
    func migration() throws {
        let source = try valet("Druidia", .whenUnlocked)
        let target = try valet("Spaceball", .afterFirstUnlock)
        try source.setString("12345", forKey: "Skroob")
        try enter(.locked)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try target.migrateObjects(from: source, removeOnCompletion: true) }
        try KeychainSession.current().unlock(passcode: "swordfish")
        #expect(try source.string(forKey: "Skroob") == "12345")
        #expect(try target.allKeys().isEmpty)
    }
}
#endif

@Suite("Errors")
struct ErrorTests {
    @Test("KeychainError has six cases, numbered from 0, each described by type and case")
    func keychainErrors() {
        let names = ["couldNotAccessKeychain", "userCancelled", "itemNotFound", "missingEntitlement", "emptyKey", "emptyValue"]
        #expect(KeychainError.allCases.map(\.rawValue) == Array(0...5))
        #expect(KeychainError.allCases.map(\.description) == names.map { "KeychainError.\($0)" })
        #expect(
            KeychainError.allCases == [
                .couldNotAccessKeychain, .userCancelled, .itemNotFound, .missingEntitlement, .emptyKey, .emptyValue,
            ])
    }

    @Test("MigrationError has six cases, numbered from 0, each described by type and case")
    func migrationErrors() {
        let names = [
            "invalidQuery", "keyToMigrateInvalid", "dataToMigrateInvalid", "duplicateKeyToMigrate",
            "keyToMigrateAlreadyExistsInValet", "removalFailed",
        ]
        #expect(MigrationError.allCases.map(\.rawValue) == Array(0...5))
        #expect(MigrationError.allCases.map(\.description) == names.map { "MigrationError.\($0)" })
        #expect(
            MigrationError.allCases == [
                .invalidQuery, .keyToMigrateInvalid, .dataToMigrateInvalid, .duplicateKeyToMigrate,
                .keyToMigrateAlreadyExistsInValet, .removalFailed,
            ])
    }

    @Test(
        "Each status has its error, and only errSecItemNotFound is itemNotFound",
        arguments: [
            (errSecItemNotFound, KeychainError.itemNotFound),
            (errSecUserCanceled, .userCancelled),
            (errSecAuthFailed, .userCancelled),
            (errSecMissingEntitlement, .missingEntitlement),
            (errSecInteractionNotAllowed, .couldNotAccessKeychain),
            (errSecNotAvailable, .couldNotAccessKeychain),
            (errSecDecode, .couldNotAccessKeychain),
            (errSecIO, .couldNotAccessKeychain),
            (errSecParam, .couldNotAccessKeychain),
            (errSecDuplicateItem, .couldNotAccessKeychain),
        ])
    func statusMapping(status: OSStatus, error: KeychainError) {
        #expect(KeychainError(status: status) == error)
    }

    @Test(
        "Writing does not prompt, so a failed authentication is not reported as canceled",
        arguments: [
            (errSecAuthFailed, KeychainError.couldNotAccessKeychain),
            (errSecItemNotFound, .couldNotAccessKeychain),
            (errSecUserCanceled, .userCancelled),
            (errSecMissingEntitlement, .missingEntitlement),
            (errSecInteractionNotAllowed, .couldNotAccessKeychain),
        ])
    func statusMappingOfWriting(status: OSStatus, error: KeychainError) {
        #expect(KeychainError(statusOfWriting: status) == error)
    }
}
