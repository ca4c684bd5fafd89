// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing
import Valet

@Suite("Instances of valets whose values a person releases")
struct EnclaveInstanceTests {
    private static let all: [SecureEnclaveAccessControl] = [.userPresence, .biometricAny, .biometricCurrentSet, .devicePasscode]

    @Test("The same arguments give the same live instance, and others another one")
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

    @Test("Nobody holds one: it is let go")
    func letGo() throws {
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

    @Test("It says what it was made with")
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

    @Test("The access controls have the numbers that other versions of Valet give them")
    func rawValues() {
        #expect(Self.all.map(\.rawValue) == [1, 2, 3, 4])
        #expect(SecureEnclaveAccessControl(rawValue: 0) == nil)
    }
}
