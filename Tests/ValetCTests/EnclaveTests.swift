// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import CValet
import Foundation
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet

/// Every pointer below is that of a Swift string or variable, which lives until the call returns, or of a handle that is not yet freed.
@Suite("Secure Enclave valets in C", .inMemoryKeychain)
struct EnclaveTests {
    private let end = CallsFromSwift.nulTerminated

    private func keychainWithPasscode() throws -> InMemoryKeychain {
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.setPasscode("swordfish")
        return keychain
    }

    @Test("Storing asks nobody, each read asks, in the words that were given")
    func enclave() throws {
        let keychain = try keychainWithPasscode()
        let handle = try unsafe CallsFromSwift.handle {
            unsafe valet_enclave_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_enclave_free(handle) }
        let isAccessible = unsafe valet_enclave_can_access(handle)
        #expect(isAccessible)
        #expect(CallsFromSwift.status { unsafe valet_enclave_set_string(handle, "Skroob", end, "12345", end) } == valet_success)
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode, .correctPasscode, .cancel)
        var read = CallsFromSwift.text { unsafe valet_enclave_get_string_with_prompt(handle, "Skroob", end, "open", end, $0, $1) }
        #expect(read.text == "12345")
        let bytes = CallsFromSwift.bytes { unsafe valet_enclave_get(handle, "Skroob", end, $0, $1) }
        #expect(bytes.bytes == Data("12345".utf8))
        read = CallsFromSwift.text { unsafe valet_enclave_get_string(handle, "Skroob", end, $0, $1) }
        #expect(read == (valet_error_user_cancelled, nil))
        // Nobody is left to be asked.
        let last = CallsFromSwift.bytes { unsafe valet_enclave_get_with_prompt(handle, "Skroob", end, "again", end, $0, $1) }
        #expect(last == (valet_error_could_not_access_keychain, nil))
        #expect(keychain.person.questions.count == 4)
        #expect(keychain.person.questions.first?.reason == "open")
    }

    @Test("A single prompt valet asks once, until that is required again")
    func singlePrompt() throws {
        let keychain = try keychainWithPasscode()
        let handle = try unsafe CallsFromSwift.handle {
            unsafe valet_single_prompt_create(#function, end, valet_access_control(valet_access_control_device_passcode), $0)
        }
        defer { unsafe valet_single_prompt_free(handle) }
        #expect(CallsFromSwift.status { unsafe valet_single_prompt_set_string(handle, "Skroob", end, "12345", end) } == valet_success)
        keychain.person.answers(.correctPasscode)
        for reason in ["first", "second"] {
            let read = CallsFromSwift.text { unsafe valet_single_prompt_get_string_with_prompt(handle, "Skroob", end, reason, end, $0, $1) }
            #expect(read.text == "12345")
        }
        let listed = CallsFromSwift.keys { unsafe valet_single_prompt_all_keys(handle, "third", end, $0, $1) }
        #expect(listed == (valet_success, ["Skroob"]))
        #expect(CallsFromSwift.status { unsafe valet_single_prompt_require_prompt_on_next_access(handle) } == valet_success)
        let refused = CallsFromSwift.bytes { unsafe valet_single_prompt_get_with_prompt(handle, "Skroob", end, "fourth", end, $0, $1) }
        #expect(refused == (valet_error_could_not_access_keychain, nil))
        #expect(keychain.person.questions.map(\.reason) == ["first", "fourth"])
    }

    @Test("Values of a single prompt valet go to the other kind, with one answer")
    func migration() throws {
        let keychain = try keychainWithPasscode()
        let source = try unsafe CallsFromSwift.handle {
            unsafe valet_single_prompt_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_single_prompt_free(source) }
        let destination = try unsafe CallsFromSwift.handle {
            unsafe valet_enclave_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_enclave_free(destination) }
        for key in ["a", "b"] {
            #expect(CallsFromSwift.status { unsafe valet_single_prompt_set_string(source, key, end, "value", end) } == valet_success)
        }
        keychain.person.answers(.cancel)
        #expect(CallsFromSwift.status { unsafe valet_enclave_migrate_from_single_prompt(destination, true) } == valet_error_user_cancelled)
        keychain.person.answers(.correctPasscode)
        #expect(CallsFromSwift.status { unsafe valet_enclave_migrate_from_single_prompt(destination, true) } == valet_success)
        #expect(keychain.person.questions.count == 2)
        var isThere = false
        for key in ["a", "b"] {
            #expect(CallsFromSwift.status { unsafe valet_enclave_contains(destination, key, end, &isThere) } == valet_success)
            #expect(isThere)
            #expect(CallsFromSwift.status { unsafe valet_single_prompt_contains(source, key, end, &isThere) } == valet_success)
            #expect(!isThere)
        }
    }
}
#endif
