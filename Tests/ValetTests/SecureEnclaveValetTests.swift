// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTesting
import ServedKeychain
import Testing
import Valet

#if !canImport(Darwin)
@Suite("A Secure Enclave valet", .keychain(accessGroups: testAccessGroups))
struct SecureEnclaveValetTests {
    /// The access controls that a passcode satisfies.
    static let releasable: [SecureEnclaveAccessControl] = [.userPresence, .devicePasscode]

    @Test("Each read prompts with the given text", arguments: releasable)
    func everyReadPrompts(accessControl: SecureEnclaveAccessControl) throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet("Druidia", accessControl)
        try valet.setString("12345", forKey: "Skroob")
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode, times: 4)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "open the air shield") == "12345")
        #expect(try valet.object(forKey: "Skroob", withPrompt: "again") == bytes("12345"))
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try valet.object(forKey: "Skroob", withPrompt: "") == bytes("12345"))
        #expect(keychain.person.questions.map(\.reason) == ["open the air shield", "again", nil, nil])
        #expect(keychain.person.questions.allSatisfy { $0.secret == .passcode })
    }

    @Test("Storing, checking and removing do not prompt", arguments: releasable)
    func noPrompt(accessControl: SecureEnclaveAccessControl) throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet("Druidia", accessControl)
        #expect(valet.canAccessKeychain())
        #expect(try !valet.containsObject(forKey: "Skroob"))
        try valet.setString("1", forKey: "Skroob")
        try valet.setString("12345", forKey: "Skroob")
        try valet.setObject(bytes("2"), forKey: "Helmet")
        #expect(valet.canAccessKeychain())
        #expect(try valet.containsObject(forKey: "Skroob"))
        try valet.removeObject(forKey: "Helmet")
        try valet.removeObject(forKey: "absent")
        #expect(try !valet.containsObject(forKey: "Helmet"))
        try valet.removeAllObjects()
        try valet.removeAllObjects()
        #expect(try !valet.containsObject(forKey: "Skroob"))
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("Replacing a value does not read it, and the new value has the same access control")
    func overwriting() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        for value in ["first", "second", "third"] { try valet.setString(value, forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob") == "third")
    }

    @Test("A failed replacement preserves the old value")
    func overwritingFails() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        try valet.setString("old", forKey: "Skroob")
        keychain.fail(.writes, with: .diskFull, times: 1)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("new", forKey: "Skroob") }
        try keychain.lock()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("new", forKey: "Skroob") }
        try keychain.unlock()
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob") == "old")
    }

    @Test("Canceling, a timeout, a missing prompt and three wrong answers each throw, and the value is kept")
    func refusals() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        try valet.setString("12345", forKey: "Skroob")
        keychain.person.answers(.cancel)
        #expect(throws: KeychainError.userCancelled) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        keychain.person.answers(.tooLate)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        keychain.person.answers(.absence)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        keychain.person.answers(.text("wrong"), times: 3)
        #expect(throws: KeychainError.userCancelled) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        keychain.person.answers(.text("wrong"), .correctPasscode)
        #expect(try valet.string(forKey: "Skroob", withPrompt: "please") == "12345")
    }

    @Test("A missing value is not found, without a prompt")
    func nothingThere() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob", withPrompt: "please") }
        #expect(throws: KeychainError.itemNotFound) { try valet.object(forKey: "Skroob") }
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("Empty keys and values are rejected before a prompt, and bytes that are not text are not found as text")
    func values() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        #expect(throws: KeychainError.emptyKey) { try valet.setString("12345", forKey: "") }
        #expect(throws: KeychainError.emptyValue) { try valet.setString("", forKey: "Skroob") }
        #expect(throws: KeychainError.emptyValue) { try valet.setObject(Data(), forKey: "Skroob") }
        #expect(throws: KeychainError.emptyKey) { try valet.string(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.object(forKey: "", withPrompt: "please") }
        #expect(throws: KeychainError.emptyKey) { try valet.containsObject(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.removeObject(forKey: "") }
        #expect(keychain.person.questions.isEmpty)
        try valet.setObject(Data([0xFF]), forKey: "Skroob")
        keychain.person.answers(.correctPasscode, times: 2)
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(try valet.object(forKey: "Skroob") == Data([0xFF]))
    }

    @Test("Without a passcode nothing can be stored, which is not reported as canceled")
    func noPasscode() throws {
        let keychain = try #require(InMemoryKeychain.current)
        let valet = try enclaveValet()
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(try !valet.containsObject(forKey: "Skroob"))
        #expect(keychain.person.questions.isEmpty)
        #expect(try RawItems.all().isEmpty)
    }

    @Test("Without biometry, values that require it cannot be stored, although the keychain is accessible")
    func biometry() throws {
        let keychain = try keychainWithPasscode()
        for accessControl in [SecureEnclaveAccessControl.biometricAny, .biometricCurrentSet] {
            let valet = try enclaveValet("Druidia", accessControl)
            #expect(valet.canAccessKeychain())
            #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("12345", forKey: "Skroob") }
            #expect(try !valet.containsObject(forKey: "Skroob"))
            #expect(try singlePromptValet("Druidia", accessControl).canAccessKeychain())
        }
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("While locked, values can be checked and removed but not stored; a read prompts and leaves the keychain locked")
    func locked() throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        #expect(valet.canAccessKeychain())
        try valet.setString("12345", forKey: "Skroob")
        try keychain.lock()
        #expect(!valet.canAccessKeychain())
        #expect(try valet.containsObject(forKey: "Skroob"))
        #expect(try !valet.containsObject(forKey: "absent"))
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "Skroob") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.setString("54321", forKey: "new") }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try valet.string(forKey: "Skroob") }
        keychain.person.answers(.correctPasscode)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try keychain.state == .locked)
        try valet.removeObject(forKey: "Skroob")
        #expect(try !valet.containsObject(forKey: "Skroob"))
    }

    @Test("With a group that the entitlements do not list, every call throws missingEntitlement")
    func missingEntitlement() throws {
        let keychain = try keychainWithPasscode()
        let valet = SecureEnclaveValet.sharedGroupValet(with: try foreignGroup(), accessControl: .userPresence)
        #expect(!valet.canAccessKeychain())
        #expect(throws: KeychainError.missingEntitlement) { try valet.setString("12345", forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.string(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.containsObject(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.removeObject(forKey: "Skroob") }
        #expect(throws: KeychainError.missingEntitlement) { try valet.removeAllObjects() }
        #expect(keychain.person.questions.isEmpty)
    }

    @Test("Concurrent writes of one key store one complete value, without a prompt")
    func concurrentWrites() async throws {
        let keychain = try keychainWithPasscode()
        let valet = try enclaveValet()
        let values = (0..<16).map { String(repeating: "\($0) ", count: 100) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for value in values { group.addTask { try valet.setString(value, forKey: "Skroob") } }
            try await group.waitForAll()
        }
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode)
        #expect(values.contains(try valet.string(forKey: "Skroob")))
    }
}
#endif

@Suite("Instances of valets that require authentication")
struct EnclaveInstanceTests {
    private static let all: [SecureEnclaveAccessControl] = [.userPresence, .biometricAny, .biometricCurrentSet, .devicePasscode]

    @Test("The same arguments return the same live instance; different arguments return another")
    func identity() throws {
        let name = try identifier("same enclave instance")
        let group = try sharedGroup()
        for accessControl in Self.all {
            #expect(
                SecureEnclaveValet.valet(with: name, accessControl: accessControl)
                    === SecureEnclaveValet.valet(with: name, accessControl: accessControl))
            #expect(
                SinglePromptSecureEnclaveValet.valet(with: name, accessControl: accessControl)
                    === SinglePromptSecureEnclaveValet.valet(with: name, accessControl: accessControl))
        }
        #expect(
            SecureEnclaveValet.sharedGroupValet(with: group, accessControl: .userPresence)
                === SecureEnclaveValet.sharedGroupValet(with: group, identifier: nil, accessControl: .userPresence))
        #expect(
            SinglePromptSecureEnclaveValet.sharedGroupValet(with: group, identifier: name, accessControl: .userPresence)
                === SinglePromptSecureEnclaveValet.sharedGroupValet(with: group, identifier: name, accessControl: .userPresence))
        let enclaves =
            Self.all.map { SecureEnclaveValet.valet(with: name, accessControl: $0) }
            + [
                SecureEnclaveValet.sharedGroupValet(with: group, accessControl: .userPresence),
                SecureEnclaveValet.sharedGroupValet(with: group, identifier: name, accessControl: .userPresence),
            ]
        #expect(Set(enclaves).count == enclaves.count)
        #expect(Set(enclaves.map(ObjectIdentifier.init)).count == enclaves.count)
        let singles = Self.all.map { SinglePromptSecureEnclaveValet.valet(with: name, accessControl: $0) }
        #expect(Set(singles).count == singles.count)
    }

    @Test("An unreferenced valet is released")
    func released() throws {
        weak var enclave: SecureEnclaveValet?
        weak var single: SinglePromptSecureEnclaveValet?
        do {
            let first = try enclaveValet("let go")
            let second = try singlePromptValet("let go")
            (enclave, single) = (first, second)
            #expect(enclave != nil && single != nil)
        }
        #expect(enclave == nil && single == nil)
    }

    @Test("A valet has the properties that it was created with")
    func properties() throws {
        let enclave = try enclaveValet("Druidia", .biometricCurrentSet)
        #expect(enclave.accessControl == .biometricCurrentSet)
        #expect(enclave.identifier.description == "Druidia")
        #expect(enclave.description.contains("Druidia"))
        #expect(enclave.description.contains("AccessibleWhenPasscodeSetThisDeviceOnly"))
        #expect(enclave.description.contains("(Secure Enclave)"))
        let single = try singlePromptValet("Druidia", .devicePasscode)
        #expect(single.accessControl == .devicePasscode)
        #expect(single.identifier.description == "Druidia")
        #expect(single.description.contains("Druidia"))
        #expect(single.description.contains("AccessibleWhenPasscodeSetThisDeviceOnly"))
        #expect(single.description.contains("(Single Prompt)"))
        let shared = SecureEnclaveValet.sharedGroupValet(with: try sharedGroup(), accessControl: .userPresence)
        #expect(shared.identifier.description == "Druidia")
    }

    @Test("The raw values of access controls are those of other Valet versions")
    func rawValues() {
        #expect(Self.all.map(\.rawValue) == [1, 2, 3, 4])
        #expect(SecureEnclaveAccessControl(rawValue: 0) == nil)
    }
}
