// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet

/// The four functions for one item, as a program under test calls them.
private enum Program {
    private static var query: [String: Any] {
        [kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "account"]
    }

    static func add(_ value: String = "12345") -> OSStatus {
        SecItemAdd(query.merging([kSecValueData as String: Data(value.utf8)]) { $1 } as CFDictionary, nil)
    }

    static func find() -> OSStatus { SecItemCopyMatching(query as CFDictionary, nil) }

    static func update(to value: String) -> OSStatus {
        SecItemUpdate(query as CFDictionary, [kSecValueData as String: Data(value.utf8)] as CFDictionary)
    }

    static func delete() -> OSStatus { SecItemDelete(query as CFDictionary) }

    static func value() -> String? {
        var result: CFTypeRef?
        // The pointer is read during the call only.
        _ = unsafe SecItemCopyMatching(query.merging([kSecReturnData as String: true]) { $1 } as CFDictionary, &result)
        return (result as? Data).map { String(decoding: $0, as: UTF8.self) }
    }
}

@Suite("Injected faults", .inMemoryKeychain)
struct InjectedFaultTests {
    typealias Fault = InMemoryKeychain.Fault

    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    private func valet() throws -> Valet {
        Valet.valet(with: try #require(Identifier(nonEmpty: "Druidia")), accessibility: .whenUnlocked)
    }

    @Test(
        "Each write fault has its status in every writing function, and the item is unchanged",
        arguments: [
            (Fault.unavailable, errSecNotAvailable), (.diskFull, errSecNotAvailable), (.inputOutput(isWritten: false), errSecIO),
        ])
    func writes(fault: Fault, status: OSStatus) throws {
        try keychain().fail(.writes, with: fault)
        #expect(Program.add() == status)
        #expect(Program.find() == errSecItemNotFound)
        try keychain().stopFailing()
        #expect(Program.add() == errSecSuccess)
        try keychain().fail(.writes, with: fault)
        #expect(Program.update(to: "54321") == status)
        #expect(Program.delete() == status)
        #expect(Program.value() == "12345")
        try keychain().stopFailing()
        #expect(Program.update(to: "54321") == errSecSuccess)
        #expect(Program.value() == "54321")
    }

    @Test("A write whose outcome is unknown may have taken place")
    func unknownOutcome() throws {
        try keychain().fail(.writes, with: .inputOutput(isWritten: true), times: 3)
        #expect(Program.add() == errSecIO)
        #expect(Program.value() == "12345")
        #expect(Program.update(to: "54321") == errSecIO)
        #expect(Program.value() == "54321")
        #expect(Program.delete() == errSecIO)
        #expect(Program.find() == errSecItemNotFound)
        #expect(Program.add() == errSecSuccess)
    }

    @Test(
        "An injected read fault returns its status, and never 'not found'",
        arguments: [(Fault.unavailable, errSecNotAvailable), (.inputOutput(isWritten: false), errSecIO)])
    func reads(fault: Fault, status: OSStatus) throws {
        try keychain().fail(.reads, with: fault)
        #expect(Program.find() == status)
        #expect(Program.add() == errSecSuccess)
        #expect(Program.find() == status)
        try keychain().stopFailing()
        #expect(Program.find() == errSecSuccess)
    }

    @Test("A full disk prevents neither reads nor the validation of a call")
    func diskFullOfAll() throws {
        #expect(Program.add() == errSecSuccess)
        try keychain().fail(.all, with: .diskFull)
        #expect(Program.value() == "12345")
        #expect(Program.add() == errSecDuplicateItem)
        #expect(Program.delete() == errSecNotAvailable)
    }

    @Test("A fault occurs the requested number of times; calls that cannot fail this way do not count")
    func times() throws {
        try keychain().fail(.writes, with: .diskFull, times: 1)
        #expect(Program.find() == errSecItemNotFound)
        #expect(Program.delete() == errSecItemNotFound)
        #expect(Program.add() == errSecNotAvailable)
        #expect(Program.add() == errSecSuccess)
        try keychain().fail(.all, with: .unavailable, times: 2)
        #expect(Program.find() == errSecNotAvailable)
        #expect(Program.delete() == errSecNotAvailable)
        #expect(Program.find() == errSecSuccess)
        try keychain().fail(.all, with: .unavailable, times: 0)
        #expect(Program.find() == errSecSuccess)
    }

    @Test("Several faults occur in the order of injection")
    func order() throws {
        try keychain().fail(.writes, with: .inputOutput(isWritten: false), times: 1)
        try keychain().fail(.all, with: .inputOutput(isWritten: true), times: 1)
        #expect(Program.add() == errSecIO)
        #expect(Program.find() == errSecIO)
        #expect(Program.find() == errSecItemNotFound)
    }

    @Test("A damaged item is reported as damaged, not absent, and the others are unchanged")
    func damage() throws {
        let valet = try valet()
        for key in ["Skroob", "Helmet"] { try valet.setString("12345", forKey: key) }
        try keychain().damageItems(account: "Skroob")
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
        #expect(try valet.string(forKey: "Helmet") == "12345")
        try valet.setString("54321", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "54321")
    }

    @Test("All items can be damaged together; damaging none is an error")
    func damageAll() throws {
        let error = #expect(throws: InMemoryKeychain.DamageError.self) { try keychain().damageItems() }
        #expect(error?.localizedDescription == "there is no such item to damage")
        #expect(Program.add() == errSecSuccess)
        #expect(throws: InMemoryKeychain.DamageError.self) { try keychain().damageItems(account: "other") }
        #expect(Program.find() == errSecSuccess)
        try keychain().damageItems()
        #expect(Program.find() == errSecDecode)
        #expect(Program.delete() == errSecSuccess)
    }

    @Test("A valet reports that it cannot access a keychain whose reads or writes fail")
    func valets() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        for fault in [Fault.unavailable, .inputOutput(isWritten: false)] {
            try keychain().fail(.all, with: fault)
            #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
            #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "Skroob") }
            #expect(!valet.canAccessKeychain())
            try keychain().stopFailing()
        }
        try keychain().fail(.writes, with: .diskFull)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "Skroob") }
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("Faults apply to passcode changes by the program, but not to calls of the test itself")
    func passcode() throws {
        try keychain().fail(.all, with: .unavailable)
        try keychain().setPasscode("12345")
        try keychain().lock()
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
        let session = try KeychainSession.current()
        let error = #expect(throws: KeychainSessionError.self) { try session.changePasscode(from: "12345", to: "654321") }
        #expect(error?.status == errSecNotAvailable)
        try keychain().stopFailing()
        try session.unlock(passcode: "12345")
    }

    @Test("The test can unlock with the old or the new passcode after an unknown outcome", arguments: [false, true])
    func unknownPasscode(isWritten: Bool) throws {
        try keychain().setPasscode("12345")
        try keychain().fail(.writes, with: .inputOutput(isWritten: isWritten), times: 1)
        let session = try KeychainSession.current()
        let error = #expect(throws: KeychainSessionError.self) { try session.changePasscode(from: "12345", to: "654321") }
        #expect(error?.status == errSecIO)
        try keychain().restart()
        #expect(throws: KeychainSessionError.self) { try session.unlock(passcode: isWritten ? "12345" : "54321") }
        try keychain().unlock()
        #expect(try keychain().state == .unlocked)
    }
}
