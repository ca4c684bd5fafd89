// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

@Suite("A valet and the lock", .inMemoryKeychain(accessGroups: testAccessGroups))
struct LockTests {
    private static let states: [KeychainSession.State] = [.unlocked, .locked, .neverUnlocked]

    /// Brings the keychain from unlocked into a state.
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

    @Test("Whether the keychain can be used follows its state", arguments: Accessibility.allCases, states)
    func canAccessKeychain(accessibility: Accessibility, state: KeychainSession.State) throws {
        try enter(state)
        let valet = try valet("Druidia", accessibility)
        #expect(valet.canAccessKeychain() == isAvailable(accessibility, in: state))
        try KeychainSession.current().unlock(passcode: "swordfish")
        #expect(valet.canAccessKeychain())
        try enter(state)
        #expect(valet.canAccessKeychain() == isAvailable(accessibility, in: state))
    }

    @Test("While locked, no method says that nothing is there", arguments: Accessibility.allCases)
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

    @Test("A locked value is not there to be migrated, and stays where it is")
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
