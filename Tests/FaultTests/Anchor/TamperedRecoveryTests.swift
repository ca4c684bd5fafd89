// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A recovery key beside older, newer, and altered files", .blocking)
struct TamperedRecoveryTests {
    @Test("A recovery key does not open an older keybag")
    func olderKeybagWithRecoveryKey() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
            let home = TamperedHome(home: directory)
            try keychain.addItem("account 1", "secret 1")
            let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            try home.edit("CREATE TABLE side.held AS SELECT bytes FROM keybag")
            try keychain.set("swordfish")
            try home.edit("UPDATE keybag SET bytes = (SELECT bytes FROM held); DELETE FROM keybag_copy; DROP TABLE held")
            let failure = #expect(throws: KeychainFailure.self) {
                try LocalKeychain(home: directory).useRecoveryKey(key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
            }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            withExtendedLifetime(keychain) {}
        }
    }

    @Test("An older file is recovered with the recovery key, and then accepted")
    func olderFileRecovered() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(2...2)
            try home.copy(home.home + "/old", to: home.database)
            let keyFile = try #require(
                try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys").first { $0.hasSuffix(".key") })
            try FileManager.default.removeItem(atPath: home.home + "/keys/" + keyFile)
            try LocalKeychain(home: home.home).useRecoveryKey(
                key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
            #expect(try home.problem() != nil)
            try home.accept()
        }
    }

    @Test("If only an older file is left, the recovery key opens it after its keys were accepted by name")
    func olderFileWithOlderProtector() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/old")
            func loseKeyFile() throws {
                let names = try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys")
                let keyFile = try #require(names.first { $0.hasSuffix(".key") })
                try FileManager.default.removeItem(atPath: home.home + "/keys/" + keyFile)
            }
            try loseKeyFile()
            try LocalKeychain(home: home.home).useRecoveryKey(key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
            try home.add(2...2)
            try home.copy(home.home + "/old", to: home.database)
            for hasKeyFile in [true, false] {
                if !hasKeyFile { try loseKeyFile() }
                let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home.home).recoveryNeedsPasscode(key.secret) }
                #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            }
            let keychain = LocalKeychain(home: home.home)
            #expect(try !keychain.recoveryNeedsPasscode(key.secret, acceptingOlderKeybag: true))
            try keychain.useRecoveryKey(
                key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true, acceptingOlderKeybag: true)
            #expect(try home.problem() != nil)
            try home.accept(keybag: true)
        }
    }

    @Test("A recovery key opens a keychain whose generation of the keybag was altered, and it can be written again")
    func alteredGeneration() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            let names = try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys")
            try FileManager.default.removeItem(atPath: home.home + "/keys/" + #require(names.first { $0.hasSuffix(".key") }))
            try home.edit("UPDATE meta SET keybag_generation = 1000")
            try LocalKeychain(home: home.home).useRecoveryKey(key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
            try home.add(2...2)
            #expect(try home.problem() == nil)
        }
    }

    /// The anchor counts the changes of the newest content, and a recovery of an older one must not catch up with that count.
    @Test(
        "Changes that are missing in an older file are reported after its recovery too, however often it is recovered",
        arguments: [false, true], [1, 5])
    func missingChangesAfterRecovery(altersGeneration: Bool, missingCount: Int) throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(2...(1 + missingCount))
            try home.copy(home.home + "/old", to: home.database)
            for _ in 1...3 {
                try Self.loseKeyFile(home)
                if altersGeneration { try home.edit("UPDATE meta SET keybag_generation = 99") }
                try LocalKeychain(home: home.home).useRecoveryKey(key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
                #expect(try home.problem() == .rolledBack(missingChangeCount: UInt64(missingCount)))
            }
            try home.accept()
        }
    }

    private static func loseKeyFile(_ home: TamperedHome) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys")
        try FileManager.default.removeItem(atPath: home.home + "/keys/" + #require(names.first { $0.hasSuffix(".key") }))
    }

    @Test("A recovery that fails changes nothing in the file, so it does not make older keys look like the newest ones")
    func failedRecoveryWritesNothing() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = TamperedHome(home: directory)
            // Closing a keychain empties its -wal file.
            func perform<Result>(_ body: (LocalKeychain) throws -> Result) throws -> Result {
                let result = try body(LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory))
                try home.emptyLog()
                return result
            }
            try perform { try $0.set("swordfish") }
            let key = try perform { try $0.createRecoveryKey(passcode: Passcode(text: "swordfish"), replacing: false) }
            try home.copy(home.database, to: directory + "/old")
            try perform { keychain in
                try keychain.changePasscode(
                    from: Passcode(text: "swordfish"), to: Passcode(text: "1234567"), rotatingKeys: false, autoLock: .standard)
            }
            try home.copy(directory + "/old", to: home.database)
            try home.edit("UPDATE meta SET keybag_generation = 99")
            try Self.loseKeyFile(home)
            let before = try Data(contentsOf: URL(filePath: home.database))
            for protector in [DeviceProtectorKind.systemdCredential, .tpm2] {
                #expect(throws: KeychainFailure.self) {
                    try LocalKeychain(home: directory).useRecoveryKey(
                        key.secret, protector: protector, passcode: Passcode(text: "swordfish"), acceptingNoPasscode: false,
                        acceptingOlderKeybag: true)
                }
            }
            #expect(try Data(contentsOf: URL(filePath: home.database)) == before)
            let failure = #expect(throws: KeychainFailure.self) {
                try LocalKeychain(home: directory).useRecoveryKey(
                    key.secret, protector: .keyFile, passcode: Passcode(text: "swordfish"), acceptingNoPasscode: false)
            }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
        }
    }

    @Test("The key file of a newer copy is kept by a recovery of an older one, and used again when the newer one is put back")
    func newerCopyAfterRecovery() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/old")
            let names = try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys")
            try FileManager.default.removeItem(atPath: home.home + "/keys/" + #require(names.first { $0.hasSuffix(".key") }))
            func recover(acceptingOlderKeybag: Bool) throws {
                try LocalKeychain(home: home.home).useRecoveryKey(
                    key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true, acceptingOlderKeybag: acceptingOlderKeybag)
            }
            try recover(acceptingOlderKeybag: false)
            try home.add(2...2)
            try home.copy(home.database, to: home.home + "/new")
            try home.copy(home.home + "/old", to: home.database)
            try recover(acceptingOlderKeybag: true)
            try home.copy(home.home + "/new", to: home.database)
            for _ in 1...2 { #expect(try LocalKeychain(home: home.home).secret(of: "account 2") == "secret 2") }
            try LocalKeychain.withCheapPasscode(home: home.home, holder: .processMemory).set("swordfish")
        }
    }

    @Test("A recovery that fails leaves the key file, and reports no success, if the tables were altered")
    func recoveryOfAlteredTables() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/intact")
            let keys = try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys").sorted()
            try home.edit("CREATE TRIGGER ignored BEFORE UPDATE ON keybag BEGIN SELECT RAISE(IGNORE); END")
            for isAccepted in [false, true] {
                #expect(throws: KeychainFailure.self) {
                    try LocalKeychain(home: home.home).useRecoveryKey(
                        key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true, acceptingOlderKeybag: isAccepted)
                }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys").sorted() == keys)
            try home.copy(home.home + "/intact", to: home.database)
            #expect(try LocalKeychain(home: home.home).secret(of: "account 1") == "secret 1")
        }
    }

    @Test("A recovery is refused while the key file has the secret, whatever else is wrong with the content")
    func recoveryWithKeyFile() throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            let key = try LocalKeychain(home: home.home).createRecoveryKey(passcode: nil, replacing: false)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(2...2)
            try home.copy(home.home + "/old", to: home.database)
            #expect(throws: KeychainFailure(.duplicateItem, "")) {
                try LocalKeychain(home: home.home).useRecoveryKey(key.secret, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
            }
            try home.accept()
        }
    }
}
