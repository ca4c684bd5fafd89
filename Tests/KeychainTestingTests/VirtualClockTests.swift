// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

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

    @Test("It stands still until it is moved on, and goes by the system's time before that")
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

    @Test("Items are dated by it")
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

    @Test("An unlocked keychain locks itself when as much time has passed by it, and not before")
    func autoLock() throws {
        let keychain = try keychain()
        try keychain.setPasscode("12345")
        #expect(try KeychainSession.current().autoLock?.seconds == 15 * 60)
        keychain.clock.advance(by: .seconds(15 * 60 - 1))
        #expect(SecItemAdd(query as CFDictionary, nil) == errSecSuccess, "which is a use, so the time begins anew")
        keychain.clock.advance(by: .seconds(15 * 60 - 1))
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
        keychain.clock.advance(by: .seconds(15 * 60))
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecInteractionNotAllowed)
        #expect(try keychain.state == .locked)
    }

    @Test("A keychain that is not to lock itself does not, whatever the time")
    func noAutoLock() throws {
        let keychain = try keychain()
        try KeychainSession.current().setPasscode("123456", autoLock: .never)
        keychain.clock.advance(by: .seconds(10 * 365 * 24 * 60 * 60))
        #expect(try keychain.state == .unlocked)
    }
}
