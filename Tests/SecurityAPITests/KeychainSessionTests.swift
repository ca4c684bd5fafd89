// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainTesting
import SecurityAPI
import Testing

@Suite("KeychainSession")
struct KeychainSessionTests {
    private static var item: [String: Any] {
        [kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "luggage", kSecAttrAccount as String: "Skroob"]
    }

    private func add() -> OSStatus {
        var item = Self.item
        item[kSecValueData as String] = Data("12345".utf8)
        return SecItemAdd(item as CFDictionary, nil)
    }

    private func find() -> OSStatus { SecItemCopyMatching(Self.item as CFDictionary, nil) }

    private func status(_ body: () throws(KeychainSessionError) -> Void) -> OSStatus {
        do throws(KeychainSessionError) {
            try body()
            return errSecSuccess
        } catch {
            return error.status
        }
    }

    @Test("Without a passcode the keychain is unlocked, and cannot be locked")
    func withoutPasscode() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            #expect(try session.state == .unlocked)
            #expect(try !session.isPasscodeSet)
            #expect(try session.autoLock == nil)
            #expect(status { () throws(KeychainSessionError) in try session.lock() } == errSecAuthFailed)
            #expect(status { () throws(KeychainSessionError) in try session.unlock(passcode: "x") } == errSecAuthFailed)
        }
    }

    @Test("Locking makes items inaccessible; unlocking with the passcode, as text or bytes, makes them accessible")
    func lockAndUnlock() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            #expect(add() == errSecSuccess)
            try session.setPasscode("swordfish")
            #expect(find() == errSecSuccess)
            try session.lock()
            #expect(try session.state == .locked)
            #expect(find() == errSecInteractionNotAllowed)
            #expect(status { () throws(KeychainSessionError) in try session.unlock(passcode: "Swordfish") } == errSecAuthFailed)
            #expect(find() == errSecInteractionNotAllowed)
            try session.unlock(passcode: "swordfish")
            #expect(find() == errSecSuccess)
            try session.lock(includingAfterFirstUnlock: true)
            #expect(try session.state == .neverUnlocked)
            try session.unlock(passcode: Data("swordfish".utf8))
            #expect(find() == errSecSuccess)
        }
    }

    @Test("Bytes that are not UTF-8 are rejected as a passcode")
    func notText() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            #expect(status { () throws(KeychainSessionError) in try session.setPasscode(Data([0x61, 0xFF])) } == errSecParam)
            #expect(status { () throws(KeychainSessionError) in try session.setPasscode(Data()) } == errSecParam)
            #expect(try !session.isPasscodeSet)
        }
    }

    @Test("The time of automatic locking can be set when unlocking, and changed later")
    func autoLock() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            try session.setPasscode("swordfish")
            #expect(try session.autoLock == .standard)
            #expect(KeychainSession.AutoLock.standard.seconds == 900)
            try session.setAutoLock(.never)
            #expect(try session.autoLock == .never)
            #expect(find() == errSecItemNotFound)
            try session.lock()
            #expect(try session.autoLock == nil)
            #expect(status { () throws(KeychainSessionError) in try session.setAutoLock(.never) } == errSecInteractionNotAllowed)
            try session.unlock(passcode: "swordfish", autoLock: .after(seconds: 60))
            #expect(try session.autoLock == .after(seconds: 60))
        }
    }

    @Test("Changing the passcode requires the old one")
    func change() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            #expect(add() == errSecSuccess)
            try session.setPasscode("swordfish")
            #expect(
                status { () throws(KeychainSessionError) in try session.changePasscode(from: "wrong", to: "123456") } == errSecAuthFailed)
            try session.changePasscode(from: "swordfish", to: "123456", rotatingKeys: true)
            try session.lock()
            #expect(status { () throws(KeychainSessionError) in try session.unlock(passcode: "swordfish") } == errSecAuthFailed)
            try session.unlock(passcode: "123456")
            #expect(find() == errSecSuccess)
        }
    }

    @Test("Removing the passcode first lists the items to delete, and does nothing without confirmation")
    func remove() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            try session.setPasscode("swordfish")
            var item = Self.item
            item[kSecAttrAccessible as String] = kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly
            #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)

            var shown: [KeychainSession.PasscodeItem] = []
            let isRemoved = try session.removePasscode("swordfish") { items in
                shown = items
                return false
            }
            #expect(!isRemoved)
            #expect(shown.map(\.service) == ["luggage"])
            #expect(shown.map(\.account) == ["Skroob"])
            #expect(try session.isPasscodeSet)
            #expect(find() == errSecSuccess)

            #expect(try session.removePasscode("swordfish") { _ in true })
            #expect(try !session.isPasscodeSet)
            #expect(find() == errSecItemNotFound)
            #expect(SecItemAdd(item as CFDictionary, nil) == errSecAuthFailed)
        }
    }

    @Test("A program can wait until its items are accessible")
    func stateChanges() async throws {
        try await withInMemoryKeychain {
            let session = try KeychainSession.current()
            try session.setPasscode("swordfish")
            var states = session.stateChanges.makeAsyncIterator()
            #expect(try await states.next() == .unlocked)
            try session.lock()
            #expect(try await states.next() == .locked)
            // The current state is not repeated: the next element is another state.
            try session.lock(includingAfterFirstUnlock: true)
            #expect(try await states.next() == .neverUnlocked)
            try session.unlock(passcode: "swordfish")
            #expect(try await states.next() == .unlocked)
        }
    }

    @Test("Canceling the task ends the wait")
    func cancelledWait() async throws {
        try await withInMemoryKeychain {
            let session = try KeychainSession.current()
            let waiting = Task {
                var count = 0
                for try await _ in session.stateChanges { count += 1 }
                return count
            }
            waiting.cancel()
            #expect(try await waiting.value <= 1)
        }
    }

    @Test("The localized description of an error is its description")
    func errorText() throws {
        try withInMemoryKeychain {
            let session = try KeychainSession.current()
            do throws(KeychainSessionError) {
                try session.lock()
                Issue.record("nothing can be locked without a passcode")
            } catch {
                #expect(!error.description.isEmpty)
                #expect(error.localizedDescription == error.description)
            }
        }
    }
}
