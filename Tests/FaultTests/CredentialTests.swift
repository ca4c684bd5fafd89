// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A keychain whose device secret is a systemd credential", .blocking)
struct CredentialTests {
    private func withCredential(_ body: (_ home: String, _ credential: URL) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let credentials = directory + "/credentials"
            try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: false)
            let credential = URL(filePath: credentials + "/keychain-device-secret")
            try Data((0..<32).map { UInt8($0) }).write(to: credential)
            try body(directory + "/home", credential)
        }
    }

    private func keychain(_ home: String, _ credential: URL, protector: DeviceProtectorKind? = nil) -> LocalKeychain {
        LocalKeychain(home: home) { configuration in
            configuration.credentialsDirectory = credential.deletingLastPathComponent().path
            configuration.protectorForNewStore = protector
        }
    }

    @Test("The credential is used and reported, and no key file is created")
    func roundTrip() throws {
        try withCredential { home, credential in
            try keychain(home, credential).addItem("kept", "secret")
            let reopened = keychain(home, credential)
            #expect(try reopened.secret(of: "kept") == "secret")
            #expect(try reopened.report().store?.protector == .systemdCredential)
            #expect(try reopened.report().store?.protectorLocation == credential.path)
            let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys")
            #expect(names.count == 1 && names.allSatisfy { $0.hasSuffix(".anchor") })
        }
    }

    @Test("The credential is found through the environment of a service")
    func environment() throws {
        try withCredential { home, credential in
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["attempt", "add", "read"],
                environment: ["KEYCHAIN_HOME": home, "CREDENTIALS_DIRECTORY": credential.deletingLastPathComponent().path])
            #expect(run.output == "0 add\n0 read\n")
            #expect(try keychain(home, credential).report().store?.protector == .systemdCredential)
        }
    }

    @Test("The configuration can choose the key file despite a credential, and the store keeps its choice")
    func keyFileChosen() throws {
        try withCredential { home, credential in
            try keychain(home, credential, protector: .keyFile).addItem("kept", "secret")
            let later = keychain(home, credential, protector: .systemdCredential)
            #expect(try later.secret(of: "kept") == "secret")
            #expect(try later.report().store?.protector == .keyFile)
        }
    }

    @Test("If the configuration requires a missing credential, nothing is created")
    func requiredAndMissing() throws {
        try withTemporaryDirectory { directory throws in
            let keychain = LocalKeychain(home: directory + "/home") { $0.protectorForNewStore = .systemdCredential }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("new", "secret") }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.subject == .credential && failure?.cause == .missing)
            let stateFailure = #expect(throws: KeychainFailure.self) { try keychain.sessionStatus() }
            #expect(stateFailure?.subject == .credential && stateFailure?.cause == .missing)
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    /// Changes of a credential.
    enum Change: CaseIterable {
        case removed, shortened, lengthened, another, notHandedOver
    }

    @Test("If the credential is missing or wrong, every call fails, and nothing is changed", arguments: Change.allCases)
    func changed(_ change: Change) throws {
        try withCredential { home, credential in
            try keychain(home, credential).addItem("kept", "secret")
            switch change {
            case .removed: try FileManager.default.removeItem(at: credential)
            case .shortened: try Data(count: 31).write(to: credential)
            case .lengthened: try Data(count: 33).write(to: credential)
            case .another: try Data(repeating: 1, count: 32).write(to: credential)
            case .notHandedOver: break
            }
            let before = try FileSnapshot(of: home)
            for call in BadStateTests.Call.allCases {
                let failure = #expect(throws: KeychainFailure.self) {
                    try call.make(on: change == .notHandedOver ? LocalKeychain(home: home) : keychain(home, credential))
                }
                #expect(failure?.status == .notAvailable)
                #expect(failure?.subject == .credential, "\(call): \(String(describing: failure))")
                #expect(try FileSnapshot(of: home) == before, "\(call)")
            }
        }
    }
}
