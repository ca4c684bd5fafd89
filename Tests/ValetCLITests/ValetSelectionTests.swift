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
        #expect(selected.valet.accessibility == .whenUnlocked)
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

    @Test("The environment gives defaults, and an option wins over it")
    func environment() throws {
        let environment = [
            "VALET_IDENTIFIER": "a", "VALET_ACCESSIBILITY": "after-first-unlock", "VALET_GROUP": "group.b", "VALET_APP": "c",
        ]
        let selected = try select([], environment)
        #expect(selected.valet.identifier.description == "a")
        #expect(selected.valet.accessibility == .afterFirstUnlock)
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
