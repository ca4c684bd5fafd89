// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import Testing
import Valet

@testable import ValetCLI

@Suite("Auto-lock option")
struct AutoLockOptionTests {
    @Test(
        "A number requires a unit, and \"none\" means never",
        arguments: [
            ("1s", 1), ("15m", 900), ("2h", 7_200), ("1d", 86_400), ("090s", 90), ("4294967295s", UInt32.max), ("none", nil),
        ] as [(String, UInt32?)])
    func parsed(_ text: String, _ seconds: UInt32?) throws {
        #expect(try AutoLockOption(parsing: text).autoLock.seconds == seconds)
    }

    @Test(
        "Other texts are rejected",
        arguments: ["", "15", "m", "0m", "-1m", "+1m", "1.5h", "15 m", "15min", "never", "4294967296s", "4294967295m", "１m"])
    func refused(_ text: String) {
        #expect(throws: ValidationError.self) { try AutoLockOption(parsing: text) }
    }

    @Test(
        "The phrase uses the largest exact unit",
        arguments: [
            (1, "1 second"), (90, "90 seconds"), (60, "1 minute"), (900, "15 minutes"), (3_600, "1 hour"), (172_800, "2 days"),
        ] as [(UInt32, String)])
    func phrase(_ seconds: UInt32, _ words: String) {
        #expect(AutoLock.after(seconds: seconds).phrase == "locks automatically after \(words) of inactivity")
    }
}

@Suite("Secret assignment (NAME=KEY)")
struct SecretAssignmentTests {
    @Test(
        "The name is a variable of a shell; the key is the text after the first =, or else the name",
        arguments: [
            ("A=b", "A", "b"), ("_a1=b=c", "_a1", "b=c"), ("TOKEN= ", "TOKEN", " "), ("A=é", "A", "é"), ("TOKEN", "TOKEN", "TOKEN"),
        ])
    func parsed(_ text: String, _ name: String, _ key: String) throws {
        let assignment = try #require(SecretAssignment(argument: text))
        #expect(assignment.name == name)
        #expect(assignment.key == key)
    }

    @Test("Other texts are rejected", arguments: ["", "1A", "A=", "=b", "1A=b", "A-B=c", "É=b", "A B=c", " A=b"])
    func refused(_ text: String) {
        #expect(SecretAssignment(argument: text) == nil)
    }
}

@Suite("Selected valet")
struct ValetSelectionTests {
    private func select(_ arguments: [String], _ environment: [String: String] = [:]) throws -> SelectedValet {
        try ValetOptions.parse(arguments).resolve(environment: environment)
    }

    private func service(_ arguments: [String], _ environment: [String: String] = [:]) throws -> String? {
        try select(arguments, environment).valet.itemQuery["svce"] as? String
    }

    @Test("Without options, the default valet of the command is selected")
    func defaults() throws {
        let selected = try select([])
        #expect(selected.valet.identifier.description == "default")
        #expect(selected.accessibility == .whenUnlocked)
        #expect(selected.entitlements.accessGroups == ["valet"])
    }

    @Test(
        "The options determine the service",
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
        "The options select a Secure Enclave valet",
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

    @Test("A reason requires a valet with authentication")
    func reason() throws {
        let reason = try ReasonOption.parse(["--reason", "why"])
        #expect(try reason.text(for: select(["--secure-enclave", "user-presence"])) == "why")
        let failure = #expect(throws: CommandFailure.self) { try reason.text(for: select([])) }
        #expect(failure?.status == .usage)
        #expect(try ReasonOption.parse([]).text(for: select([])).isEmpty)
    }

    @Test("Biometric authentication is refused with an alternative", arguments: ["biometric-any", "biometric-current-set"])
    func biometry(option: String) {
        let failure = #expect(throws: CommandFailure.self) { try select(["--secure-enclave", option]) }
        #expect(failure?.status == .unavailable)
        #expect(failure?.advice.contains("user-presence") == true)
    }

    @Test("The environment provides defaults, and options override them")
    func environment() throws {
        let environment = [
            "VALET_IDENTIFIER": "a", "VALET_ACCESSIBILITY": "after-first-unlock", "VALET_GROUP": "group.b", "VALET_APP": "c",
        ]
        let selected = try select([], environment)
        #expect(selected.valet.identifier.description == "a")
        #expect(selected.accessibility == .afterFirstUnlock)
        #expect(selected.entitlements.accessGroups == ["c", "group.b"])
        #expect(try select(["--identifier", "x", "--app", "y"], environment).valet.identifier.description == "x")
        #expect(try select(["--app", "y"], environment).place.accessGroup == "y")
        #expect(try select(["--group", "group.y"], environment).place.accessGroup == "group.y")
        #expect(try select([], ["VALET_IDENTIFIER": "", "VALET_GROUP": ""]).valet.identifier.description == "default")
    }

    @Test(
        "Options that cannot be combined are a usage error",
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

    @Test("An unknown class in the environment is a usage error")
    func wrongEnvironment() {
        let failure = #expect(throws: CommandFailure.self) { try select([], ["VALET_ACCESSIBILITY": "always"]) }
        #expect(failure?.status == .usage)
    }
}
