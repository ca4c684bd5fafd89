// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Testing

@Suite("The configuration, from the environment")
struct KeychainConfigurationTests {
    @Test(
        "The places follow KEYCHAIN_HOME, else the XDG base directories, else HOME",
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
        #expect(failure?.reason.contains("KEYCHAIN_HOME") == true)
    }

    @Test(
        "Without any place the failure names what to set",
        arguments: [[:], ["HOME": ""], ["HOME": "skroob"], ["XDG_STATE_HOME": "/state"]])
    func noPlace(_ environment: [String: String]) {
        let failure = #expect(throws: KeychainFailure.self) { try KeychainConfiguration(environment: environment) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.reason.contains("HOME") == true)
        #expect(failure?.reason.contains("KEYCHAIN_HOME") == true)
    }

    @Test("KEYCHAIN_PROTECTOR names a protector", arguments: DeviceProtectorKind.allCases)
    func knownProtector(_ kind: DeviceProtectorKind) throws {
        let configuration = try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": kind.name])
        #expect(configuration.protectorForNewStore == kind)
    }

    @Test("KEYCHAIN_TPM_TCTI says where the TPM is; unset or empty, it is the machine's")
    func tpmPlace() throws {
        let standard = "device:/dev/tpmrm0"
        for (value, expected) in [(nil, standard), ("", standard), ("swtpm:path=/s", "swtpm:path=/s")] as [(String?, String)] {
            var environment = ["KEYCHAIN_HOME": "/k"]
            environment["KEYCHAIN_TPM_TCTI"] = value
            #expect(try KeychainConfiguration(environment: environment).tpmTCTI == expected)
        }
    }

    @Test(
        "Without KEYCHAIN_PROTECTOR the choice is left open",
        arguments: [["KEYCHAIN_HOME": "/k"], ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": ""]])
    func openProtector(_ environment: [String: String]) throws {
        #expect(try KeychainConfiguration(environment: environment).protectorForNewStore == nil)
    }

    @Test("A KEYCHAIN_PROTECTOR that is not known is refused, with the names that are", arguments: ["tpm", "KeyFile", " keyFile", "none"])
    func unknownProtector(_ name: String) {
        let failure = #expect(throws: KeychainFailure.self) {
            try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PROTECTOR": name])
        }
        #expect(failure?.status == .parameter)
        #expect(failure?.reason.contains("keyFile") == true)
        #expect(failure?.reason.contains("systemdCredential") == true)
    }

    @Test(
        "The credentials directory is taken when it is absolute",
        arguments: [("/run/credentials/a.service", "/run/credentials/a.service"), ("credentials", nil), ("", nil), (nil, nil)]
            as [(String?, String?)])
    func credentialsDirectory(_ value: String?, expected: String?) throws {
        var environment = ["KEYCHAIN_HOME": "/k"]
        environment["CREDENTIALS_DIRECTORY"] = value
        #expect(try KeychainConfiguration(environment: environment).credentialsDirectory == expected)
    }

    @Test(
        "KEYCHAIN_PINENTRY names the program that asks, or, empty, none",
        arguments: [(nil, .automatic), ("", .never), ("/opt/bin/pinentry", .program("/opt/bin/pinentry"))]
            as [(String?, PinentrySelection)])
    func pinentry(_ value: String?, expected: PinentrySelection) throws {
        var environment = ["KEYCHAIN_HOME": "/k"]
        environment["KEYCHAIN_PINENTRY"] = value
        #expect(try KeychainConfiguration(environment: environment).pinentry == expected)
    }

    @Test("A KEYCHAIN_PINENTRY that would be looked for somewhere is refused", arguments: ["pinentry", "./pinentry", " ", "~/pinentry"])
    func relativePinentry(_ value: String) {
        let failure = #expect(throws: KeychainFailure.self) {
            try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "KEYCHAIN_PINENTRY": value])
        }
        #expect(failure?.status == .parameter)
        #expect(failure?.reason.contains("KEYCHAIN_PINENTRY") == true)
    }

    @Test("Of the environment, whatever asks a person learns where the person is and which language to speak, and nothing else")
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
