// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("The person in front of an in-memory keychain", .inMemoryKeychain)
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

    @Test("Unless a test says otherwise nobody is there")
    func absent() throws {
        try keychain().setPasscode("swordfish")
        try addItem()
        #expect(status() == errSecInteractionNotAllowed)
        #expect(try keychain().person.remainingAnswerCount == 0)
    }

    @Test("Answers are given in order, each once; then nobody is there")
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

    @Test("The person knows the passcode that is set when they are asked, whoever has set it")
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

    @Test("A test sees what the person was asked")
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
