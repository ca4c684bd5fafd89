// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet

@Suite("The lock of an in-memory keychain", .inMemoryKeychain)
struct LockTests {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    private func valet(_ accessibility: Accessibility = .whenUnlocked) throws -> Valet {
        Valet.valet(with: try #require(Identifier(nonEmpty: "Druidia")), accessibility: accessibility)
    }

    @Test("A new keychain is unlocked and has no passcode; to unlock it changes nothing")
    func new() throws {
        #expect(try keychain().state == .unlocked)
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
        #expect(try !KeychainSession.current().isPasscodeSet)
    }

    @Test("Lock, unlock and restart lead through the states, and the program's session sees each")
    func states() throws {
        let session = try KeychainSession.current()
        try keychain().lock()
        #expect(try keychain().state == .locked)
        #expect(try session.state == .locked)
        try keychain().lock(includingAfterFirstUnlock: true)
        #expect(try keychain().state == .neverUnlocked)
        #expect(try session.state == .neverUnlocked)
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
        #expect(try session.state == .unlocked)
        try keychain().restart()
        #expect(try keychain().state == .neverUnlocked)
        #expect(try session.state == .neverUnlocked)
        #expect(try session.keyHolder == .processMemory)
    }

    @Test("A valet cannot reach the keychain while its items are locked, and finds them afterwards")
    func valets() throws {
        let whenUnlocked = try valet()
        let afterFirstUnlock = try valet(.afterFirstUnlock)
        try whenUnlocked.setString("12345", forKey: "Skroob")
        try afterFirstUnlock.setString("12345", forKey: "Skroob")
        try keychain().lock()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try whenUnlocked.string(forKey: "Skroob") }
        #expect(try afterFirstUnlock.string(forKey: "Skroob") == "12345")
        try keychain().restart()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try afterFirstUnlock.string(forKey: "Skroob") }
        try keychain().unlock()
        #expect(try whenUnlocked.string(forKey: "Skroob") == "12345")
        #expect(try afterFirstUnlock.string(forKey: "Skroob") == "12345")
    }

    @Test("The passcode that the test sets is the one that the program unlocks with")
    func passcode() throws {
        try keychain().setPasscode("12345")
        #expect(try keychain().state == .unlocked)
        try keychain().restart()
        let session = try KeychainSession.current()
        let error = #expect(throws: KeychainSessionError.self) { try session.unlock(passcode: "54321") }
        #expect(error?.status == errSecAuthFailed)
        #expect(try keychain().state == .neverUnlocked)
        try session.unlock(passcode: "12345")
        #expect(try keychain().state == .unlocked)
    }

    @Test("Another passcode takes the place of the first, whoever has set that")
    func passcodeAgain() throws {
        try keychain().lock()
        try keychain().setPasscode("first")
        try keychain().setPasscode("second")
        try keychain().lock()
        let session = try KeychainSession.current()
        #expect(throws: KeychainSessionError.self) { try session.unlock(passcode: "first") }
        try session.unlock(passcode: "second")
        #expect(try keychain().state == .unlocked)
    }

    @Test("The program under test meets the same rules for passcodes as elsewhere; the test need not")
    func passcodeTooShort() throws {
        let session = try KeychainSession.current()
        #expect(#expect(throws: KeychainSessionError.self) { try session.setPasscode("12345") }?.status == errSecParam)
        try keychain().setPasscode("1")
        #expect(
            #expect(throws: KeychainSessionError.self) { try session.changePasscode(from: "1", to: "12345") }?.status == errSecParam)
        try session.changePasscode(from: "1", to: "123456")
        #expect(try keychain().state == .unlocked)
    }

    @Test("A test unlocks with the passcode that the program has set or changed")
    func programsPasscode() throws {
        let session = try KeychainSession.current()
        try session.setPasscode("123456")
        try keychain().restart()
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
        try session.changePasscode(from: "123456", to: "654321", rotatingKeys: true)
        try keychain().lock()
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
    }

    @Test("A program waits until its items can be had")
    func waits() async throws {
        let keychain = try keychain()
        try keychain.lock()
        let session = try KeychainSession.current()
        var states: [KeychainSession.State] = []
        for try await state in session.stateChanges {
            states.append(state)
            guard state != .unlocked else { break }
            try keychain.unlock()
        }
        #expect(states == [.locked, .unlocked])
    }

    @Test("Two tests in parallel lock a keychain each", arguments: 0..<4)
    func ownLock(round: Int) throws {
        if round.isMultiple(of: 2) { try keychain().lock() }
        #expect(try keychain().state == (round.isMultiple(of: 2) ? .locked : .unlocked))
    }
}
