// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import ServedKeychain
import Testing
@testable import Valet

/// FaultTests has the tests with files and several processes.
@Suite("A stream of changes", .keychain(accessGroups: testAccessGroups), .timeLimit(.minutes(10)))
struct ChangeTests {
    private let vault = Valet.valet(with: "changes", accessibility: .whenUnlocked)

    @Test("An element follows each change, and changes before the next iteration are one")
    func elements() async throws {
        var changes = vault.changes.makeAsyncIterator()
        try vault.setString("1", forKey: "key")
        #expect(await changes.next() != nil)
        for number in 2...10 { try vault.setString("\(number)", forKey: "key") }
        try vault.removeObject(forKey: "key")
        #expect(await changes.next() != nil)
        #expect(try vault.allKeys().isEmpty)
        try vault.setString("1", forKey: "other")
        #expect(await changes.next() != nil)
    }

    @Test("Several tasks listen, each with a stream of its own, also to valets with access control")
    func streams() async throws {
        let keychain = try keychainWithPasscode()
        let streams = [vault.changes, vault.changes, try enclaveValet().changes, try singlePromptValet("changes").changes]
        let listeners = streams.map { stream in Task { await stream.first { true } != nil } }
        try vault.setString("1", forKey: "key")
        for listener in listeners { #expect(await listener.value) }
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("The stream goes on while the keychain is locked, and reports the lock and the unlock")
    func lock() async throws {
        let keychain = try keychainWithPasscode()
        var changes = vault.changes.makeAsyncIterator()
        try keychain.lock()
        #expect(await changes.next() != nil)
        try keychain.unlock()
        #expect(await changes.next() != nil)
        try vault.setString("1", forKey: "key")
        #expect(await changes.next() != nil)
    }

    @Test("An unlock is reported to a program that has not looked since another one set the passcode")
    func unlockAfterOlderKeybag() async throws {
        try vault.setString("1", forKey: "key")
        // By another program, as it were.
        let keychain = try keychainWithPasscode()
        try keychain.lock()
        var changes = vault.changes.makeAsyncIterator()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try vault.string(forKey: "key") }
        try keychain.unlock()
        #expect(await changes.next() != nil)
        #expect(try vault.string(forKey: "key") == "1")
    }

    @Test("The loop ends with its task")
    func cancellation() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let vault = vault
        let listener = Task {
            var count = 0
            for await _ in vault.changes {
                count += 1
                begin.yield()
            }
            return count
        }
        let writer = Task {
            while !Task.isCancelled {
                try vault.setString("1", forKey: "key")
                await Task.yield()
            }
        }
        for await _ in begun { break }
        listener.cancel()
        #expect(await listener.value > 0)
        writer.cancel()
        try await writer.value
    }

    @Test("Where the keychain reports nothing, the items of the valet are compared")
    func polling() async throws {
        let other = Valet.valet(with: "other", accessibility: .whenUnlocked)
        var changes = vault.keychain.polledChanges(interval: .milliseconds(1)).makeAsyncIterator()
        try other.setString("1", forKey: "key")
        try vault.setString("1", forKey: "key")
        #expect(await changes.next() != nil)
        // A change of the value alone has the same account and another date.
        try vault.setString("2", forKey: "key")
        #expect(await changes.next() != nil)
        try vault.removeAllObjects()
        #expect(await changes.next() != nil)
        let keychain = try #require(InMemoryKeychain.current)
        keychain.fail(.reads, with: .unavailable)
        #expect(await changes.next() != nil)
    }
}
#endif
