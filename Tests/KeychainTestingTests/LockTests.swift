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

    @Test("A new keychain is unlocked and has no passcode; unlocking it changes nothing")
    func new() throws {
        #expect(try keychain().state == .unlocked)
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
        #expect(try !KeychainSession.current().isPasscodeSet)
    }

    @Test("Lock, unlock and restart change the state that the program's session sees")
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

    @Test("A valet cannot access the keychain while its items are locked, and finds them after the unlock")
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

    @Test("The program unlocks with the passcode that the test sets")
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

    @Test("A new passcode replaces the old one, set by the test or by the program")
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

    @Test("The usual rules for passcodes apply to the program under test, but not to the test")
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

    @Test("A program can wait until its items are accessible")
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

    @Test("Two parallel tests each lock their own keychain", arguments: 0..<4)
    func ownLock(round: Int) throws {
        if round.isMultiple(of: 2) { try keychain().lock() }
        #expect(try keychain().state == (round.isMultiple(of: 2) ? .locked : .unlocked))
    }
}

@Suite("The clock of an in-memory keychain", .inMemoryKeychain)
struct VirtualClockTests {
    private let query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "account",
    ]

    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    private func attributes() throws -> [String: Any] {
        var result: CFTypeRef?
        // The pointer is read during the call only.
        let status = unsafe SecItemCopyMatching(query.merging([kSecReturnAttributes as String: true]) { $1 } as CFDictionary, &result)
        #expect(status == errSecSuccess)
        return try #require(result as? [String: Any])
    }

    @Test("The clock follows the system until it is first advanced, and then stands still")
    func standsStill() throws {
        let clock = try keychain().clock
        let start = clock.date
        #expect(abs(start.timeIntervalSinceNow) < 24 * 60 * 60)
        #expect(clock.date == start)
        clock.advance(by: .seconds(90))
        #expect(clock.date == start.addingTimeInterval(90))
        clock.advance(by: .milliseconds(500))
        #expect(clock.date == start.addingTimeInterval(90.5))
        clock.advance(by: .seconds(-90))
        #expect(clock.date == start.addingTimeInterval(90.5))
    }

    @Test("The dates of items come from the clock")
    func dates() throws {
        let clock = try keychain().clock
        #expect(SecItemAdd(query as CFDictionary, nil) == errSecSuccess)
        let added = clock.date
        clock.advance(by: .seconds(24 * 60 * 60))
        #expect(SecItemUpdate(query as CFDictionary, [kSecAttrLabel as String: "label"] as CFDictionary) == errSecSuccess)
        let found = try attributes()
        #expect(found[kSecAttrCreationDate as String] as? Date == added)
        #expect(found[kSecAttrModificationDate as String] as? Date == clock.date)
    }

    @Test("An unlocked keychain locks itself when the clock reaches its time, and not before")
    func autoLock() throws {
        let keychain = try keychain()
        try keychain.setPasscode("12345")
        #expect(try KeychainSession.current().autoLock?.seconds == 15 * 60)
        keychain.clock.advance(by: .seconds(15 * 60 - 1))
        #expect(SecItemAdd(query as CFDictionary, nil) == errSecSuccess, "a use of the keychain, which restarts the timeout")
        keychain.clock.advance(by: .seconds(15 * 60 - 1))
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
        keychain.clock.advance(by: .seconds(15 * 60))
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecInteractionNotAllowed)
        #expect(try keychain.state == .locked)
    }

    @Test("A keychain without automatic locking never locks itself")
    func noAutoLock() throws {
        let keychain = try keychain()
        try KeychainSession.current().setPasscode("123456", autoLock: .never)
        keychain.clock.advance(by: .seconds(10 * 365 * 24 * 60 * 60))
        #expect(try keychain.state == .unlocked)
    }
}

@Suite("The person who answers the prompts of an in-memory keychain", .inMemoryKeychain)
struct PersonTests {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    private func addItem() throws {
        let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil)
        let accessControl = try #require(control)
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob",
            kSecAttrAccessControl as String: accessControl, kSecValueData as String: Data("12345".utf8),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    }

    private func status(reason: String? = nil) -> OSStatus {
        var query: [String: Any] = [kSecClass as String: kSecClassGenericPassword, kSecReturnData as String: true]
        query[kSecUseOperationPrompt as String] = reason
        return SecItemCopyMatching(query as CFDictionary, nil)
    }

    @Test("By default no prompt can be shown")
    func absent() throws {
        try keychain().setPasscode("swordfish")
        try addItem()
        #expect(status() == errSecInteractionNotAllowed)
        #expect(try keychain().person.remainingAnswerCount == 0)
    }

    @Test("Answers are used in order, each once; after that no prompt can be shown")
    func order() throws {
        try keychain().setPasscode("swordfish")
        try addItem()
        let person = try keychain().person
        person.answers(.cancel, .correctPasscode, .tooLate, .absence, .text("swordfish"))
        person.answers(.text("wrong"), times: 2)
        person.answers(.text("swordfish"))
        #expect(person.remainingAnswerCount == 8)
        let statuses = (0..<7).map { _ in status() }
        #expect(
            statuses == [
                errSecUserCanceled, errSecSuccess, errSecInteractionNotAllowed, errSecInteractionNotAllowed, errSecSuccess, errSecSuccess,
                errSecInteractionNotAllowed,
            ])
        #expect(person.remainingAnswerCount == 0)
    }

    @Test("The person answers with the passcode that is set at the time of the prompt")
    func correctPasscode() throws {
        try keychain().setPasscode("swordfish")
        try addItem()
        let person = try keychain().person
        person.answers(.correctPasscode, times: 2)
        let session = try KeychainSession.current()
        try session.changePasscode(from: "swordfish", to: "another")
        #expect(status() == errSecSuccess)
        try keychain().lock()
        #expect(status() == errSecSuccess)
        #expect(try keychain().state == .locked)
    }

    @Test("A test can read the prompts that were shown")
    func questions() throws {
        try keychain().setPasscode("swordfish")
        try addItem()
        let person = try keychain().person
        #expect(person.questions.isEmpty)
        person.answers(.text("wrong"), .cancel)
        #expect(status(reason: "open the safe") == errSecUserCanceled)
        #expect(person.questions.map(\.secret) == [.passcode, .passcode])
        #expect(person.questions.map(\.reason) == ["open the safe", "open the safe"])
        #expect(person.questions.map(\.triesLeft) == [nil, 2])
        #expect(person.questions.allSatisfy { $0.requester == "in-memory" && !$0.purpose.isEmpty && $0.cancelTitle == nil })
    }
}
