// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("A recovery key")
struct RecoveryKeyUseTests {
    @Test("It restores access when the key file is lost; the passcode is still needed", arguments: [false, true])
    func lostKeyFile(withPasscode: Bool) throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            let passcode = withPasscode ? "Druidia" : nil
            try keychain.addItem("there", "one")
            if let passcode { try keychain.set(passcode) }
            let key = try keychain.createRecoveryKey(passcode: passcode.map { try Passcode(text: $0) }, replacing: false)
            #expect(try keychain.report().store?.hasRecoveryKey == true)
            let path = try #require(try keychain.report().store?.protectorLocation)
            try home.forgetWhatIsHeld(keychain)
            try FileManager.default.removeItem(atPath: path)

            let later = try home.keychain()
            #expect(throws: KeychainFailure(.notAvailable, "")) { try later.secret(of: "there") }
            #expect(try later.recoveryNeedsPasscode(key.secret) == withPasscode)
            if withPasscode {
                for wrong in [nil, "Spaceball"] {
                    #expect(throws: KeychainFailure(.authFailed, "")) { try later.recover(key.secret, .keyFile, wrong) }
                }
            }
            try later.recover(key.secret, .keyFile, passcode)
            if let passcode { try later.unlock(with: passcode) }
            #expect(try later.secret(of: "there") == "one" && home.keyFiles() == [".key"])
            #expect(try later.report().store?.hasRecoveryKey == true && later.verify(purgingQuarantine: false).isSound)
        }
    }

    @Test("A key file that is damaged is set aside, not overwritten")
    func damagedKeyFile() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            let path = try #require(try keychain.report().store?.protectorLocation)
            var contents = try Data(contentsOf: URL(filePath: path))
            contents[30] ^= 1
            try contents.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            let later = try home.keychain()
            try later.recover(key.secret)
            #expect(try later.secret(of: "there") == "one" && home.keyFiles() == [".key", ".key.unusable1"])
        }
    }

    @Test("It restores access when the chip was cleared or replaced, and nothing was deleted meanwhile", arguments: [false, true])
    func clearedChip(withPasscode: Bool) throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            let passcode = withPasscode ? "Druidia" : nil
            try keychain.addItem("there", "one")
            if let passcode { try keychain.set(passcode) }
            let key = try #require(try keychain.protect(.tpm2, passcode, makingRecoveryKey: true))
            try home.forgetWhatIsHeld(keychain)
            home.chip.clear()

            let later = try home.keychain()
            let failure = #expect(throws: KeychainFailure.self) { try later.secret(of: "there") }
            #expect(failure?.status == .notAvailable && failure?.remedy == .useRecoveryKey && failure?.isDamage == false)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try later.addItem("new", "two") }
            try later.recover(key.secret, .tpm2, passcode)
            #expect(try later.protectorKind == .tpm2)
            if let passcode { try later.unlock(with: passcode) }
            #expect(try later.secret(of: "there") == "one" && later.verify(purgingQuarantine: false).isSound)
        }
    }

    @Test("There is one only: another replaces it if that is meant, and then the first opens nothing")
    func replaced() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let first = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            #expect(throws: KeychainFailure(.duplicateItem, "")) { _ = try keychain.createRecoveryKey(passcode: nil, replacing: false) }
            let second = try keychain.createRecoveryKey(passcode: nil, replacing: true)
            #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.recoveryNeedsPasscode(first.secret) }
            #expect(try !keychain.recoveryNeedsPasscode(second.secret))
            // Nothing is made anew where there is one.
            #expect(try keychain.protect(.tpm2, makingRecoveryKey: true) == nil)
            #expect(try !keychain.recoveryNeedsPasscode(second.secret))
        }
    }

    @Test("Made without the passcode that is set, or used where nothing is lost, or mistyped, it is refused")
    func refused() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try keychain.recover(key.secret) }
            try keychain.set("Druidia")
            #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.createRecoveryKey(passcode: nil, replacing: true) }
            let mistyped = try Passcode(text: "0000-0000")
            #expect(throws: KeychainFailure(.parameter, "")) { _ = try keychain.recoveryNeedsPasscode(mistyped.bytes) }
            #expect(try keychain.secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }
}
