// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainTestSupport
import Testing

@testable import KeychainEngine

@Suite("The configuration from the environment")
struct KeychainConfigurationTests {
    @Test(
        "The locations follow KEYCHAIN_HOME, else the XDG base directories, else HOME",
        arguments: [
            (
                ["HOME": "/home/skroob"],
                "/home/skroob/.local/share/keychain/keychain.db", "/home/skroob/.local/state/keychain"
            ),
            (
                ["HOME": "/home/skroob", "XDG_DATA_HOME": "/data", "XDG_STATE_HOME": "/state"],
                "/data/keychain/keychain.db", "/state/keychain"
            ),
            (["XDG_DATA_HOME": "/data", "XDG_STATE_HOME": "/state"], "/data/keychain/keychain.db", "/state/keychain"),
            // A relative base directory is to be ignored, and so is an empty one.
            (
                ["HOME": "/home/skroob", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": ""],
                "/home/skroob/.local/share/keychain/keychain.db", "/home/skroob/.local/state/keychain"
            ),
            (["HOME": "/home/skroob", "KEYCHAIN_HOME": "/k", "XDG_DATA_HOME": "/data"], "/k/keychain.db", "/k/keys"),
            // The name of a directory may end in a slash.
            (["HOME": "/root/"], "/root/.local/share/keychain/keychain.db", "/root/.local/state/keychain"),
            (["XDG_DATA_HOME": "/data/", "XDG_STATE_HOME": "//state/./"], "/data/keychain/keychain.db", "/state/keychain"),
            (["KEYCHAIN_HOME": "/k//"], "/k/keychain.db", "/k/keys"),
            (["KEYCHAIN_HOME": "/"], "/keychain.db", "/keys"),
        ])
    func places(_ environment: [String: String], storePath: String, keyDirectory: String) throws {
        let configuration = try KeychainConfiguration(environment: environment)
        #expect(configuration.storePath == storePath)
        #expect(configuration.keyDirectory == keyDirectory)
    }

    @Test("KEYCHAIN_HOME must be an absolute path", arguments: ["keychain", "./keychain", "~/keychain", ""])
    func relativeHome(_ home: String) {
        let failure = #expect(throws: KeychainFailure.self) {
            try KeychainConfiguration(environment: ["HOME": "/home/skroob", "KEYCHAIN_HOME": home])
        }
        #expect(failure?.status == .parameter)
        #expect(failure?.cause == .environmentVariable("KEYCHAIN_HOME"))
    }

    @Test(
        "Without any location the error has the cause KEYCHAIN_HOME",
        arguments: [[:], ["HOME": ""], ["HOME": "skroob"], ["XDG_STATE_HOME": "/state"]])
    func noPlace(_ environment: [String: String]) {
        let failure = #expect(throws: KeychainFailure.self) { try KeychainConfiguration(environment: environment) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .environmentVariable("KEYCHAIN_HOME"))
    }

    @Test("KEYCHAIN_PROTECTOR selects the protector of a new keychain", arguments: DeviceProtectorKind.allCases)
    func knownProtector(_ kind: DeviceProtectorKind) throws {
        let configuration = try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": kind.name])
        #expect(configuration.protectorForNewStore == kind)
    }

    @Test("KEYCHAIN_TPM_TCTI selects the TPM; if unset or empty, the machine's TPM is used")
    func tpmPlace() throws {
        let standard = "device:/dev/tpmrm0"
        for (value, expected) in [(nil, standard), ("", standard), ("swtpm:path=/s", "swtpm:path=/s")] as [(String?, String)] {
            var environment = ["KEYCHAIN_HOME": "/k"]
            environment["KEYCHAIN_TPM_TCTI"] = value
            #expect(try KeychainConfiguration(environment: environment).tpmTCTI == expected)
        }
    }

    @Test(
        "Without KEYCHAIN_PROTECTOR no protector is configured",
        arguments: [["KEYCHAIN_HOME": "/k"], ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": ""]])
    func openProtector(_ environment: [String: String]) throws {
        #expect(try KeychainConfiguration(environment: environment).protectorForNewStore == nil)
    }

    @Test(
        "An unknown KEYCHAIN_PROTECTOR is rejected", arguments: ["tpm", "KeyFile", " keyFile", "none"])
    func unknownProtector(_ name: String) {
        let failure = #expect(throws: KeychainFailure.self) {
            try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": name])
        }
        #expect(failure?.status == .parameter)
        #expect(failure?.cause == .environmentVariable("KEYCHAIN_PROTECTOR"))
    }

    @Test(
        "An empty credentials directory is none",
        arguments: [("/run/credentials/a.service", "/run/credentials/a.service"), ("", nil), (nil, nil)]
            as [(String?, String?)])
    func credentialsDirectory(_ value: String?, expected: String?) throws {
        var environment = ["KEYCHAIN_HOME": "/k"]
        environment["CREDENTIALS_DIRECTORY"] = value
        #expect(try KeychainConfiguration(environment: environment).credentialsDirectory == expected)
    }

    @Test(
        "KEYCHAIN_PINENTRY selects the prompt program; an empty value disables it",
        arguments: [(nil, .automatic), ("", .never), ("/opt/bin/pinentry", .program("/opt/bin/pinentry"))]
            as [(String?, PinentrySelection)])
    func pinentry(_ value: String?, expected: PinentrySelection) throws {
        var environment = ["KEYCHAIN_HOME": "/k"]
        environment["KEYCHAIN_PINENTRY"] = value
        #expect(try KeychainConfiguration(environment: environment).pinentry == expected)
    }

    @Test("A KEYCHAIN_PINENTRY that is not an absolute path is rejected", arguments: ["pinentry", "./pinentry", " ", "~/pinentry"])
    func relativePinentry(_ value: String) {
        let failure = #expect(throws: KeychainFailure.self) {
            try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PINENTRY": value])
        }
        #expect(failure?.status == .parameter)
        #expect(failure?.cause == .environmentVariable("KEYCHAIN_PINENTRY"))
    }

    @Test("A prompt program inherits only the variables for terminal, display and language")
    func promptEnvironment() throws {
        let passedOn = [
            "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0", "XAUTHORITY": "/x", "XDG_RUNTIME_DIR": "/run/user/1000",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/b", "TERM": "xterm", "LANG": "C.UTF-8", "LC_CTYPE": "de_DE.UTF-8", "HOME": "/h",
            "USER": "u", "GPG_TTY": "/dev/pts/9",
        ]
        let others = ["LD_PRELOAD": "/evil.so", "LD_LIBRARY_PATH": "/evil", "PATH": "/evil", "SECRET": "x", "KEYCHAIN_HOME": "/k"]
        let configuration = try KeychainConfiguration(environment: passedOn.merging(others) { first, _ in first })
        #expect(configuration.promptEnvironment.variables == passedOn)
    }
}

@Suite("The administrator's rules for passcodes")
struct PasscodePolicyTests {
    /// `mode`: nil for no file.
    private func policy(
        _ text: String, mode: Int? = 0o644, acceptsOwnFile: Bool = true, prepare: (String) throws -> Void = { _ in }
    ) throws -> PasscodePolicy {
        try withTemporaryDirectory { directory in
            let path = directory + "/policy.json"
            if let mode {
                try text.write(toFile: path, atomically: false, encoding: .utf8)
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            }
            try prepare(path)
            return try PasscodePolicy(filePath: path, acceptsOwnFile: acceptsOwnFile)
        }
    }

    private func failure(_ body: () throws -> PasscodePolicy) throws -> KeychainFailure {
        let failure = try #require(#expect(throws: KeychainFailure.self) { try body() })
        #expect(failure.status == .notAvailable)
        #expect(failure.remedy == .correctPolicy)
        return failure
    }

    @Test("Without a file, a passcode has at least 6 characters")
    func none() throws {
        #expect(try policy("", mode: nil) == PasscodePolicy(minimumLength: 6, cost: .standard))
    }

    @Test("Values above and below the defaults apply unchanged", arguments: [(12, 256), (1, 1)])
    func values(length: Int, mebibytes: Int) throws {
        let cost = try #require(PasscodeCost(memoryMebibytes: mebibytes))
        #expect(
            try policy(#"{"passcodeMinimumLength": \#(length), "passcodeMemoryMiB": \#(mebibytes)}"#)
                == PasscodePolicy(minimumLength: length, cost: cost))
    }

    @Test(
        "An unknown or malformed entry is an error and is never ignored",
        arguments: [
            "", "12", "[]", #"{"passcodeMinimumLength": "12"}"#, #"{"passcodeMinimumLength": 0}"#, #"{"passcodeMemoryMiB": 100}"#,
            #"{"passcodeMemoryMiB": 2048}"#, #"{"passcodeminimumlength": 12}"#,
        ])
    func notUnderstood(text: String) throws {
        let failure = try failure { try policy(text) }
        #expect(failure.path?.hasSuffix("/policy.json") == true && failure.subject == .policy)
    }

    @Test("A dangling link is an error, not a missing policy")
    func danglingLink() throws {
        let failure = try failure { try policy("", mode: nil) { _ = unsafe symlink("nowhere", $0) } }
        #expect(failure.cause == .symbolicLink)
    }

    @Test("A directory that is a dangling link is an error, not a missing policy")
    func danglingDirectory() throws {
        try withTemporaryDirectory { directory in
            // The paths are copied for the call.
            _ = unsafe symlink("nowhere", directory + "/keychain")
            let failure = try failure { try PasscodePolicy(filePath: directory + "/keychain/policy.json") }
            #expect(failure.cause == .symbolicLink)
        }
    }

    @Test("A directory in place of the policy is rejected")
    func directory() throws {
        _ = try failure {
            try policy("", mode: nil) { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false) }
        }
    }

    @Test("A policy that other users can change is rejected", arguments: [0o664, 0o646, 0o666])
    func writableByOthers(mode: Int) throws {
        #expect(try failure { try policy("{}", mode: mode) }.cause == .accessibleToOthers)
    }

    @Test("A policy that root does not own is rejected, even if the user owns it", .requiresOrdinaryUser)
    func ownFile() throws {
        #expect(try failure { try policy("{}", acceptsOwnFile: false) }.cause == .wrongOwner)
    }

    @Test("Root also rejects a policy of another user", .requiresRoot)
    func othersFile() throws {
        // The path is copied for the call.
        let failure = try failure { try policy("{}") { _ = unsafe chown($0, 12_345, 12_345) } }
        #expect(failure.cause == .wrongOwner)
    }

    @Test("An error about the policy has the policy's path, not the keychain's")
    func namesThePolicy() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/etc.json"
            try "no".write(toFile: path, atomically: true, encoding: .utf8)
            let keychain = LocalKeychain(home: directory + "/home") {
                $0.policyPath = path
                $0.testPolicy = PasscodePolicy()
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.set("swordfish") }
            #expect(failure?.path == path && failure?.subject == .policy)
        }
    }
}
