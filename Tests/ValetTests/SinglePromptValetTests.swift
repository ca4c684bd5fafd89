// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainTesting
import ServedKeychain
import Testing
import Valet

@Suite("A single prompt valet", .keychain(accessGroups: testAccessGroups))
struct SinglePromptValetTests {
    /// Creates a valet with a unique name, because live instances are shared and keep their authentication.
    private func valet(_ name: String = #function) throws -> SinglePromptSecureEnclaveValet { try singlePromptValet(name) }

    @Test("One authentication serves every later call")
    func promptsOnce() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        try valet.setString("2", forKey: "Helmet")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "open the air shield") == "12345")
        #expect(try valet.object(forKey: "Helmet", withPrompt: "another reason") == bytes("2"))
        #expect(try valet.allKeys(userPrompt: "list") == ["Skroob", "Helmet"])
        #expect(keychain.person.questions.map(\.reason) == ["open the air shield"])
    }

    @Test("Listing prompts once with the given text, and not at all if the valet is empty")
    func listing() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        #expect(try valet.allKeys(userPrompt: "list").isEmpty)
        #expect(valet.canAccessKeychain())
        #expect(try valet.allKeys(userPrompt: "list").isEmpty)
        #expect(keychain.person.questions.isEmpty)
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.allKeys(userPrompt: "list") == ["Skroob"])
        #expect(try valet.string(forKey: "Skroob", withPrompt: "read") == "12345")
        #expect(keychain.person.questions.map(\.reason) == ["list"])
    }

    @Test("A prompt can be required again")
    func requirePrompt() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "first") == "12345")
        valet.requirePromptOnNextAccess()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "second") }
        keychain.person.answers(.cancel)
        #expect(throws: KeychainError.userCancelled) { try valet.string(forKey: "Skroob", withPrompt: "third") }
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "fourth") == "12345")
        #expect(try valet.allKeys(userPrompt: "fifth") == ["Skroob"])
        #expect(keychain.person.questions.map(\.reason) == ["first", "second", "third", "fourth"])
        valet.requirePromptOnNextAccess()
        valet.requirePromptOnNextAccess()
        keychain.person.answers(.correctPasscode)
        #expect(try valet.allKeys(userPrompt: "sixth") == ["Skroob"])
    }

    @Test("Locking invalidates the authentication")
    func locking() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
        try keychain.lock()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "") }
        try keychain.unlock()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "") }
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
    }

    @Test("Changing the passcode invalidates the authentication")
    func passcodeChange() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
        try keychain.setPasscode("another one")
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "") }
        keychain.person.answers(.text("another one"))
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
    }

    @Test("Storing, checking and removing do not prompt, before and after an authentication")
    func noPrompt() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        func check() throws {
            #expect(valet.canAccessKeychain())
            #expect(try !valet.containsObject(forKey: "Skroob"))
            try valet.setString("1", forKey: "Skroob")
            try valet.setObject(bytes("12345"), forKey: "Skroob")
            #expect(try valet.containsObject(forKey: "Skroob"))
            try valet.removeObject(forKey: "Skroob")
            try valet.setString("12345", forKey: "Skroob")
            try valet.removeAllObjects()
            try valet.removeObject(forKey: "Skroob")
            #expect(try !valet.containsObject(forKey: "Skroob"))
        }
        try check()
        #expect(keychain.person.questions.isEmpty)
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
        try valet.removeAllObjects()
        try check()
        #expect(keychain.person.questions.count == 1)
    }

    @Test("Neither two instances nor the two kinds of valet share an authentication")
    func instances() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        let other = try singlePromptValet("other", .devicePasscode)
        let enclave = try enclaveValet()
        try valet.setString("12345", forKey: "Skroob")
        try other.setString("2", forKey: "Skroob")
        try enclave.setString("3", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "") == "12345")
        #expect(throws: KeychainError.couldNotAccessKeychain) { try other.string(forKey: "Skroob", withPrompt: "") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try enclave.string(forKey: "Skroob") }
    }

    @Test("Concurrent reads prompt once")
    func concurrentReads() async throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        try await withThrowingTaskGroup(of: String.self) { group in
            for index in 0..<16 { group.addTask { try valet.string(forKey: "Skroob", withPrompt: "reader \(index)") } }
            for try await value in group { #expect(value == "12345") }
        }
        #expect(keychain.person.questions.count == 1)
    }

    @Test("Requiring a prompt does not affect a call that has already begun")
    func renewingMeanwhile() async throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.correctPasscode, times: 400)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<50 {
                        let value = try valet.string(forKey: "Skroob", withPrompt: "")
                        #expect(value == "12345")
                    }
                }
            }
            group.addTask { for _ in 0..<100 { valet.requirePromptOnNextAccess() } }
            try await group.waitForAll()
        }
    }

    @Test("Without a passcode nothing can be stored or read, which is not reported as canceled")
    func noPasscode() throws {
        let keychain = try #require(InMemoryKeychain.current)
        let valet = try valet()
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob", withPrompt: "") }
        #expect(try valet.allKeys(userPrompt: "").isEmpty)
        #expect(try !valet.containsObject(forKey: "Skroob"))
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("Empty keys and values are rejected before a prompt, and bytes that are not text are not found as text")
    func values() throws {
        let keychain = try keychainWithPasscode()
        let valet = try valet()
        #expect(throws: KeychainError.emptyKey) { try valet.setString("12345", forKey: "") }
        #expect(throws: KeychainError.emptyValue) { try valet.setString("", forKey: "Skroob") }
        #expect(throws: KeychainError.emptyValue) { try valet.setObject(Data(), forKey: "Skroob") }
        #expect(throws: KeychainError.emptyKey) { try valet.string(forKey: "", withPrompt: "please") }
        #expect(throws: KeychainError.emptyKey) { try valet.containsObject(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.removeObject(forKey: "") }
        #expect(throws: KeychainError.itemNotFound) { try valet.object(forKey: "absent", withPrompt: "please") }
        #expect(keychain.person.questions.isEmpty)
        try valet.setObject(Data([0xFF]), forKey: "Skroob")
        keychain.person.answers(.correctPasscode)
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        #expect(try valet.object(forKey: "Skroob", withPrompt: "please") == Data([0xFF]))
    }
}
#endif
