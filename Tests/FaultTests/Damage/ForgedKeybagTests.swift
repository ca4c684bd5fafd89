// SPDX-License-Identifier: Apache-2.0
import Contracts
import Crypto
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Forged keybags", .blocking)
struct ForgedKeybagTests {
    /// A keychain with a passcode, one item, and a recovery key, whose key file is lost.
    private struct Victim {
        let home: String
        let recoveryKey: SharedSecretBytes
        /// What the key file contained.
        let deviceSecret: SymmetricKey
        let keyPath: String
        let keyFile: Data

        var keychain: LocalKeychain { get throws { try .withCheapPasscode(home: home, holder: .processMemory) } }

        func putKeyFileBack() throws {
            #expect(FileManager.default.createFile(atPath: keyPath, contents: keyFile, attributes: [.posixPermissions: 0o600]))
        }

        func recover(_ passcode: String?, acceptingNoPasscode: Bool = false) throws {
            let passcode: Passcode? = if let passcode { try Passcode(text: passcode) } else { nil }
            try keychain.useRecoveryKey(
                recoveryKey.secret, protector: .keyFile, passcode: passcode, acceptingNoPasscode: acceptingNoPasscode)
        }

        static func with(_ body: (Victim) throws -> Void) throws {
            try withLocalKeychain(holder: .processMemory) { keychain, home in
                try keychain.addItem("Skroob", "12345")
                try keychain.set("Druidia")
                let key = try keychain.createRecoveryKey(passcode: Passcode(text: "Druidia"), replacing: false)
                let path = try #require(try keychain.report().store?.protectorLocation)
                let keyFile = try Data(contentsOf: URL(filePath: path))
                try FileManager.default.removeItem(atPath: path)
                keychain.forgetKeys()
                try body(
                    Victim(
                        home: home, recoveryKey: key, deviceSecret: SymmetricKey(data: keyFile[25..<57]), keyPath: path, keyFile: keyFile))
            }
        }
    }

    /// What an attacker with the file alone can write as the authentication code of the recovery record.
    enum Code: CaseIterable {
        case copied, zeros, ofAnotherRecoveryKey
    }

    @Test("With the file alone, an attacker cannot make the recovery key open another keybag", arguments: Code.allCases)
    func fileAlone(_ code: Code) throws {
        try Victim.with { victim in
            let forger = try KeybagForger(home: victim.home)
            var record = try forger.recoveryRecord()
            switch code {
            case .copied: break
            case .zeros: record.replaceSubrange(32..<64, with: Data(count: 32))
            case .ofAnotherRecoveryKey: record.replaceSubrange(32..<64, with: Data(SHA256.hash(data: Data("another".utf8))))
            }
            try forger.write(forger.fields(recoveryRecord: record))
            let failure = #expect(throws: KeychainFailure.self) { try victim.keychain.recoveryNeedsPasscode(victim.recoveryKey.secret) }
            #expect(failure?.isDamage == true)
            #expect(throws: KeychainFailure.self) { try victim.recover(nil, acceptingNoPasscode: true) }
            #expect(try forger.database.integer("SELECT keybag_generation FROM meta") == 1_000)
            #expect(!FileManager.default.fileExists(atPath: victim.keyPath))
        }
    }

    @Test("With the file alone, a keybag for another recovery key, or without one, opens nothing", arguments: [true, false])
    func otherRecord(_ hasRecord: Bool) throws {
        try Victim.with { victim in
            let forger = try KeybagForger(home: victim.home)
            let own = Curve25519.KeyAgreement.PrivateKey().publicKey.rawRepresentation
            var fields = try forger.fields(recoveryRecord: own + Data(count: 32) + forger.box(to: own))
            if !hasRecord { fields[18] = nil }
            try forger.write(fields)
            #expect(throws: KeychainFailure(hasRecord ? .authFailed : .notAvailable, "")) {
                try victim.recover(nil, acceptingNoPasscode: true)
            }
            // Nor does the key file, once it is back.
            try victim.putKeyFileBack()
            #expect(throws: KeychainFailure(.notAvailable, "")) { try victim.keychain.secret(of: "Skroob") }
        }
    }

    @Test(
        "One forged copy of the keybag is damage that prevents neither opening nor recovery",
        arguments: [KeybagForger.Copies.first, .second],
        [true, false])
    func oneCopy(_ copy: KeybagForger.Copies, isRecovered: Bool) throws {
        try Victim.with { victim in
            let forger = try KeybagForger(home: victim.home)
            try forger.write(forger.fields(recoveryRecord: forger.recoveryRecord()), to: copy)
            if isRecovered {
                #expect(try victim.keychain.recoveryNeedsPasscode(victim.recoveryKey.secret))
                try victim.recover("Druidia")
            } else {
                try victim.putKeyFileBack()
                #expect(try victim.keychain.report().store?.damagedKeybagCopyCount == 1)
            }
            let keychain = try victim.keychain
            try keychain.unlock(with: "Druidia")
            #expect(try keychain.secret(of: "Skroob") == "12345")
        }
    }

    @Test("With an earlier device secret too, a keybag without the passcode is recovered only if that is accepted")
    func earlierSecret() throws {
        try Victim.with { victim in
            let forger = try KeybagForger(home: victim.home)
            let rowTagKey = try forger.unwrapped(4, with: victim.deviceSecret)
            try forger.write(
                forger.fields(
                    indexKey: forger.unwrapped(3, with: victim.deviceSecret), rowTagKey: rowTagKey,
                    recoveryRecord: forger.recoveryRecord()))
            let failure = #expect(throws: KeychainFailure.self) { try victim.recover(nil, acceptingNoPasscode: true) }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            try forger.sealState(rowTagKey: rowTagKey)
            #expect(try !victim.keychain.recoveryNeedsPasscode(victim.recoveryKey.secret))
            for passcode in [nil, "Druidia"] {
                #expect(throws: KeychainFailure(.authFailed, "")) { try victim.recover(passcode) }
            }
            #expect(try forger.database.integer("SELECT keybag_generation FROM meta") == 1_000)
            #expect(!FileManager.default.fileExists(atPath: victim.keyPath))
        }
    }

    @Test("With an earlier device secret too, a keybag with a passcode record of the attacker's opens with no passcode of the person's")
    func earlierSecretWithPasscode() throws {
        try Victim.with { victim in
            let forger = try KeybagForger(home: victim.home)
            let rowTagKey = try forger.unwrapped(4, with: victim.deviceSecret)
            var fields = try forger.fields(
                indexKey: forger.unwrapped(3, with: victim.deviceSecret), rowTagKey: rowTagKey,
                recoveryRecord: forger.recoveryRecord())
            // The class keys, the passcode record, and the presence key pair that the person's passcode opened.
            for tag: UInt16 in [5, 16, 17] { fields[tag] = forger.fields[tag] }
            try forger.write(fields)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try victim.recover("Druidia", acceptingNoPasscode: true) }
            // With device-bound keys of the attacker.
            fields[5] = try forger.deviceBoundClassKeys(of: forger.fields[5] ?? Data())
            try forger.write(fields)
            try forger.sealState(rowTagKey: rowTagKey)
            #expect(throws: KeychainFailure(.authFailed, "")) { try victim.recover("Druidia", acceptingNoPasscode: true) }
            #expect(!FileManager.default.fileExists(atPath: victim.keyPath))
        }
    }
}
