// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import KeychainCore
import Testing
import Valet

@testable import ValetCLI

@Suite("Which valet is meant")
struct ValetSelectionTests {
    private func select(_ arguments: [String], _ environment: [String: String] = [:]) throws -> SelectedValet {
        try ValetSelection.parse(arguments).resolve(environment: environment)
    }

    private func service(_ arguments: [String], _ environment: [String: String] = [:]) throws -> String? {
        try select(arguments, environment).valet.itemQuery["svce"] as? String
    }

    @Test("Without options it is the default valet of the command itself")
    func defaults() throws {
        let selected = try select([])
        #expect(selected.valet.identifier.description == "default")
        #expect(selected.accessibility == .whenUnlocked)
        #expect(selected.entitlements.accessGroups == ["valet"])
    }

    @Test(
        "The options choose the service",
        arguments: [
            (["--identifier", "a"], "VAL_VALValet_initWithIdentifier:accessibility:_a_AccessibleWhenUnlocked"),
            (["--cloud"], "VAL_VALSynchronizableValet_initWithIdentifier:accessibility:_default_AccessibleWhenUnlocked"),
            (["--identifier", "a", "--explicit"], "a"),
            (["--explicit", "--group", "group.b.c"], "b.c"),
            (
                ["--accessibility", "after-first-unlock-this-device-only"],
                "VAL_VALValet_initWithIdentifier:accessibility:_default_AccessibleAfterFirstUnlockThisDeviceOnly"
            ),
            (["--group", "group.b"], "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_b_AccessibleWhenUnlocked"),
            (
                ["--group", "TEAM.b", "--identifier", "a"],
                "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_b_a_AccessibleWhenUnlocked"
            ),
        ])
    func services(_ arguments: [String], _ expected: String) throws {
        #expect(try service(arguments) == expected)
    }

    @Test(
        "A valet whose items a person has to release",
        arguments: [
            (
                ["--secure-enclave", "user-presence"],
                "VAL_VALSecureEnclaveValet_initWithIdentifier:accessibility:_default_AccessibleWhenPasscodeSetThisDeviceOnly"
            ),
            (
                ["--secure-enclave", "device-passcode", "--identifier", "a", "--single-prompt"],
                "VAL_VALSinglePromptSecureEnclaveValet_initWithIdentifier:accessibility:_a_AccessibleWhenPasscodeSetThisDeviceOnly"
                    + "_AccessControlDevicePasscode"
            ),
            (
                ["--secure-enclave", "user-presence", "--single-prompt", "--group", "group.b"],
                "VAL_VALSinglePromptSecureEnclaveValet_initWithSharedAccessGroupIdentifier:accessibility:_b_"
                    + "AccessibleWhenPasscodeSetThisDeviceOnly"
            ),
            (
                ["--secure-enclave", "device-passcode", "--group", "TEAM.b", "--identifier", "a"],
                "VAL_VALSecureEnclaveValet_initWithSharedAccessGroupIdentifier:accessibility:_b_a_"
                    + "AccessibleWhenPasscodeSetThisDeviceOnly_AccessControlDevicePasscode"
            ),
        ])
    func enclaveServices(_ arguments: [String], _ expected: String) throws {
        #expect(try service(arguments) == expected)
        #expect(try service(arguments, ["VALET_ACCESSIBILITY": "after-first-unlock"]) == expected)
        #expect(try select(arguments).accessibility == .whenPasscodeSetThisDeviceOnly)
    }

    @Test("A reason goes with a valet that asks")
    func reason() throws {
        let reason = try ReasonOption.parse(["--reason", "why"])
        #expect(try reason.text(for: select(["--secure-enclave", "user-presence"])) == "why")
        let failure = #expect(throws: CommandFailure.self) { try reason.text(for: select([])) }
        #expect(failure?.status == .usage)
        #expect(try ReasonOption.parse([]).text(for: select([])).isEmpty)
    }

    @Test("Where nothing recognises a finger or a face, it is said what to use", arguments: ["biometric-any", "biometric-current-set"])
    func biometry(option: String) {
        let failure = #expect(throws: CommandFailure.self) { try select(["--secure-enclave", option]) }
        #expect(failure?.status == .unavailable)
        #expect(failure?.advice.contains("user-presence") == true)
    }

    @Test("The environment gives defaults, and an option wins over it")
    func environment() throws {
        let environment = [
            "VALET_IDENTIFIER": "a", "VALET_ACCESSIBILITY": "after-first-unlock", "VALET_GROUP": "group.b", "VALET_APP": "c",
        ]
        let selected = try select([], environment)
        #expect(selected.valet.identifier.description == "a")
        #expect(selected.accessibility == .afterFirstUnlock)
        #expect(selected.entitlements.accessGroups == ["c", "group.b"])
        #expect(try select(["--identifier", "x", "--app", "y"], environment).valet.identifier.description == "x")
        #expect(try select(["--app", "y"], environment).application == "y")
        #expect(try select([], ["VALET_IDENTIFIER": "", "VALET_GROUP": ""]).valet.identifier.description == "default")
    }

    @Test(
        "What does not go together is wrong usage",
        arguments: [
            ["--cloud", "--accessibility", "when-unlocked-this-device-only"], ["--group", "group"], ["--group", ".b"],
            ["--group", "a."], ["--identifier", ""], ["--app", ""], ["--explicit", "--group", "group.b", "--identifier", "a"],
            ["--single-prompt"], ["--secure-enclave", "user-presence", "--accessibility", "when-unlocked"],
            ["--secure-enclave", "user-presence", "--cloud"], ["--secure-enclave", "user-presence", "--explicit"],
            ["--secure-enclave", "user-presence", "--group", "group.b", "--identifier", ""],
        ])
    func refused(_ arguments: [String]) {
        let failure = #expect(throws: CommandFailure.self) { try select(arguments) }
        #expect(failure?.status == .usage)
    }

    @Test("A wrong class in the environment is wrong usage")
    func wrongEnvironment() {
        let failure = #expect(throws: CommandFailure.self) { try select([], ["VALET_ACCESSIBILITY": "always"]) }
        #expect(failure?.status == .usage)
    }
}
