// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("Keychains protected by a TPM", .blocking, .requiresTPM)
struct TPMKeychainTests {
    private func withHome(_ body: (String, SoftwareTPM) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let chip = try SoftwareTPM()
            // The policy that makes deriving cheap.
            _ = try LocalKeychain.withCheapPasscode(home: home)
            defer { try? OpenedStore.removeAllHeldKeys(home: home) }
            try body(home, chip)
        }
    }

    private func process(
        _ home: String, _ chip: SoftwareTPM, holder: KeyHolderSelection = .automatic
    ) throws -> SessionProcess {
        try SessionProcess(
            home: home, holder: holder, environment: ["KEYCHAIN_TPM_TCTI": chip.tcti, "KEYCHAIN_PROTECTOR": "tpm2"])
    }

    private func keychain(_ home: String, _ chip: SoftwareTPM) throws -> LocalKeychain {
        try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory) { $0.tpmTCTI = chip.tcti }
    }

    @Test("Processes share, lock, and unlock one keychain, and leave no objects in the TPM")
    func processes() throws {
        try withHome { home, chip in
            let first = try process(home, chip)
            #expect(try first.status(of: "add account ak") == .success)
            #expect(try first.status(of: "set Druidia") == .success)
            try first.end()
            let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys")
            #expect(names.count == 1 && names.allSatisfy { $0.hasSuffix(".anchor") })
            let second = try process(home, chip, holder: .processMemory)
            #expect(try second.status(of: "read account") == .interactionNotAllowed)
            #expect(try second.status(of: "unlock Druidia") == .success)
            #expect(try second.ask("read account").text == "secret of account")
            #expect(try second.status(of: "lock-all") == .success)
            #expect(try second.status(of: "read account") == .interactionNotAllowed)
            try second.end()
            #expect(try chip.loadedHandles() == [])
        }
    }

    @Test("The TPM counts wrong passcodes; during its lockout the correct one fails with the remaining time, and succeeds afterwards")
    func lockout() throws {
        try withHome { home, chip in
            try chip.setLockout(afterTries: 2, recoverySeconds: 2)
            let process = try process(home, chip)
            #expect(try process.status(of: "add account ak") == .success)
            #expect(try process.status(of: "set Druidia") == .success)
            #expect(try process.status(of: "lock-all") == .success)
            for _ in 0..<2 { #expect(try process.status(of: "unlock Spaceball") == .authFailed) }
            let answer = try process.ask("unlock Druidia")
            #expect(KeychainStatus(rawValue: answer.status) == .authFailed && answer.text.contains("refusal=lockedOut(2)"), "\(answer)")
            guard case .status(let status) = try keychain(home, chip).report(queriesTPM: true).store?.tpmState else {
                Issue.record("the chip does not answer")
                return
            }
            #expect(status.isLockedOut && status.largestFailedTryCount == 2 && !status.isLockoutAuthorizationSet)
            // The chip's own clock forgives one failure after 2 s.
            try waitUntil { try process.status(of: "unlock Druidia") == .success }
            #expect(try process.ask("read account").text == "secret of account")
            try process.end()
        }
    }

    @Test(
        "A second process uses the held device secret, not the TPM", .requiresKernelKeyring)
    func heldUntilRestart() throws {
        try withHome { home, chip in
            let first = try process(home, chip)
            #expect(try first.status(of: "add account dku") == .success)
            try first.end()
            try chip.kill()
            let second = try process(home, chip)
            #expect(try second.ask("read account").text == "secret of account")
            try second.end()
            try OpenedStore.removeAllHeldKeys(home: home)
            let third = try process(home, chip)
            let answer = try third.ask("read account")
            #expect(KeychainStatus(rawValue: answer.status) == .notAvailable && answer.text.contains("remedy=reachTPM"), "\(answer)")
            try chip.start()
            #expect(try third.ask("read account").text == "secret of account")
            try third.end()
        }
    }

    @Test("After the TPM was cleared, calls fail, nothing is deleted, and the recovery key restores access")
    func cleared() throws {
        try withHome { home, chip in
            let made = try keychain(home, chip)
            try made.addItem("account", "secret", .whenUnlocked)
            try made.set("Druidia")
            let key = try #require(try made.setProtector(.tpm2, passcode: Passcode(text: "Druidia"), creatingRecoveryKey: true))
            made.forgetKeys()
            try chip.clear()
            let process = try process(home, chip)
            let answer = try process.ask("read account")
            #expect(KeychainStatus(rawValue: answer.status) == .notAvailable && answer.text.contains("remedy=useRecoveryKey"), "\(answer)")
            #expect(try KeychainStatus(rawValue: process.ask("add other ak").status) == .notAvailable)
            let recovering = try keychain(home, chip)
            #expect(throws: KeychainFailure(.authFailed, "")) {
                try recovering.useRecoveryKey(
                    key.secret, protector: .tpm2, passcode: Passcode(text: "Spaceball"), acceptingNoPasscode: false)
            }
            try recovering.useRecoveryKey(key.secret, protector: .tpm2, passcode: Passcode(text: "Druidia"), acceptingNoPasscode: false)
            #expect(try process.status(of: "unlock Druidia") == .success)
            #expect(try process.ask("read account").text == "secret")
            try process.end()
        }
    }

    @Test("With another TPM, no key of the keychain can be unsealed")
    func foreign() throws {
        try withHome { home, chip in
            let made = try keychain(home, chip)
            let process = try process(home, chip, holder: .processMemory)
            #expect(try process.status(of: "add account dku") == .success)
            #expect(try process.status(of: "set Druidia") == .success)
            try process.end()
            _ = made
            let other = try SoftwareTPM()
            let stranger = try self.process(home, other, holder: .processMemory)
            for request in ["read account", "unlock Druidia", "add more dku", "change Druidia 12345", "protect keyFile Druidia", "state"] {
                #expect(try stranger.status(of: request) == .notAvailable, "\(request)")
            }
            try stranger.end()
            #expect(try self.process(home, chip, holder: .processMemory).ask("read account").text == "secret of account")
        }
    }

    @Test("Moves between key file and TPM keep all items")
    func roundTrip() throws {
        try withHome { home, chip in
            let keychain = try keychain(home, chip)
            let secrets = try keychain.addItemOfEachClass()
            try keychain.set("Druidia")
            for kind in [DeviceProtectorKind.tpm2, .tpm2, .keyFile, .tpm2] {
                _ = try keychain.setProtector(kind, passcode: Passcode(text: "Druidia"), creatingRecoveryKey: false)
                #expect(try keychain.report().store?.protector == kind && keychain.secrets() == secrets)
                let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { !$0.hasSuffix(".anchor") }
                #expect(names.count == (kind == .keyFile ? 1 : 0))
            }
            #expect(try chip.loadedHandles() == [])
            keychain.forgetKeys()
        }
    }
}

@Suite("Builds without TPM support", .blocking, .requiresBuildWithoutTPM)
struct WithoutTPMTests {
    @Test("Creating a keychain in a TPM or moving one there fails with an error about the TPM")
    func unsupported() throws {
        try withTemporaryDirectory { home in
            func expectNone(_ body: () throws -> Void) {
                let failure = #expect(throws: KeychainFailure.self) { try body() }
                #expect(failure?.status == .notAvailable && failure?.subject == .tpm)
            }
            expectNone { try LocalKeychain(home: home) { $0.protectorForNewStore = .tpm2 }.addItem("there", "one") }
            #expect(!FileManager.default.fileExists(atPath: home + "/keychain.db"))
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("there", "one")
            expectNone { _ = try keychain.setProtector(.tpm2, passcode: nil, creatingRecoveryKey: true) }
            #expect(try keychain.secret(of: "there") == "one" && keychain.report().store?.hasRecoveryKey == false)
        }
    }
}
