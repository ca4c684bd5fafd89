// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Repairing a keychain whose page checksums are wrong", .blocking)
struct RepairTests {
    private static let accounts = (1...6).map { "account \($0)" }
    private static let path = "/keychain.db"

    /// Creates a keychain and lets another program rewrite every page.
    static func prepare(home: String, passcode: String? = nil) throws {
        do {
            let keychain = LocalKeychain(home: home) { $0.keyHolder = .processMemory }
            for account in accounts { try keychain.addItem(account, "secret of \(account)") }
        }
        // VACUUM writes all pages in new places.
        try RawDatabase(home + path, stamps: false).execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private static func flipBit(_ home: String, at offset: Int) throws {
        var bytes = try Data(contentsOf: URL(filePath: home + path))
        bytes[offset] ^= 1 << UInt8.random(in: 0..<8)
        let handle = try FileHandle(forWritingTo: URL(filePath: home + path))
        try handle.write(contentsOf: bytes)
        try handle.close()
    }

    private static func expectAll(_ home: String, _ comment: Comment? = nil) throws {
        let keychain = LocalKeychain(home: home)
        for account in accounts { #expect(try keychain.secret(of: account) == "secret of \(account)", comment) }
        try keychain.addItem("one more", "secret of one more")
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
    }

    @Test("The keychain is rejected as damaged; a dry run finds its contents intact; after the repair all items are readable and writable")
    func repaired() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.prepare(home: home)
            #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home).secret(of: "account 1") }
            let before = try FileSnapshot(of: home)
            let found = try #require(try LocalKeychain(home: home).repair(applying: false))
            #expect(found.objections == [] && found.itemCount == Self.accounts.count && found.refusedPageCount > 0)
            #expect(found.originalPath == nil)
            #expect(try FileSnapshot(of: home) == before)
            let done = try #require(try LocalKeychain(home: home).repair(applying: true))
            let original = try #require(done.originalPath)
            #expect(original.hasPrefix(home + "/keychain.db.before-repair-"))
            try Self.expectAll(home)
            #expect(try LocalKeychain(home: home).repair(applying: true) == nil)
        }
    }

    @Test("With a flipped bit, the repair changes nothing unless the bit is in unused space")
    func flippedBits() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let (home, original) = (directory + "/home", directory + "/original")
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try Self.prepare(home: home)
            try FileManager.default.copyItem(atPath: home, toPath: original)
            let byteCount = try Data(contentsOf: URL(filePath: home + Self.path)).count
            var (refusedCount, repairedCount) = (0, 0)
            // At a small scale until both were seen.
            for round in 0..<60 where round < Scale.pick(5, full: 60) || refusedCount == 0 || repairedCount == 0 {
                try FileManager.default.removeItem(atPath: home)
                try FileManager.default.copyItem(atPath: original, toPath: home)
                let offset = Int.random(in: 100..<byteCount)
                try Self.flipBit(home, at: offset)
                let before = try FileSnapshot(of: home)
                do {
                    let report = try LocalKeychain(home: home).repair(applying: true)
                    if report?.originalPath == nil {
                        refusedCount += 1
                        #expect(report?.objections.isEmpty == false, "byte \(offset)")
                        #expect(try FileSnapshot(of: home) == before, "byte \(offset)")
                    } else {
                        repairedCount += 1
                        try Self.expectAll(home, "byte \(offset)")
                    }
                } catch let error as KeychainFailure {
                    refusedCount += 1
                    #expect(error.status == .notAvailable, "byte \(offset): \(error)")
                    #expect(try FileSnapshot(of: home) == before, "byte \(offset)")
                }
            }
            #expect(refusedCount > 0 && repairedCount > 0, "\(refusedCount) refused, \(repairedCount) repaired")
        }
    }

    /// Offsets in the header of the file: its magic, the format version, and the application ID.
    private static let identification = Array(0..<16) + Array(60..<64) + Array(68..<72)

    @Test("A flipped bit in the bytes that identify the file is named damage, and is repaired")
    func identification() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let original = directory + "/original"
            do {
                let keychain = LocalKeychain(home: original) { $0.keyHolder = .processMemory }
                for account in Self.accounts { try keychain.addItem(account, "secret of \(account)") }
            }
            for offset in Self.identification {
                let home = directory + "/\(offset)"
                try FileManager.default.copyItem(atPath: original, toPath: home)
                try Self.flipBit(home, at: offset)
                do throws(KeychainFailure) {
                    _ = try LocalKeychain(home: home).secret(of: "account 1")
                    Issue.record("byte \(offset): it was read")
                } catch {
                    #expect(error.isDamage && error.remedy == .repair, "byte \(offset): \(error)")
                }
                #expect(try LocalKeychain(home: home).repair(applying: true)?.originalPath != nil, "byte \(offset)")
                try Self.expectAll(home, "byte \(offset)")
            }
        }
    }

    @Test("Without the device secret the repair fails, and nothing is changed")
    func withoutDeviceSecret() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.prepare(home: home)
            try FileManager.default.moveItem(atPath: home + "/keys", toPath: home + "/away")
            let before = try FileSnapshot(of: home)
            do throws(KeychainFailure) {
                _ = try LocalKeychain(home: home).repair(applying: true)
                Issue.record("it was repaired")
            } catch {
                #expect(error.status == .notAvailable, "\(error)")
            }
            #expect(try FileSnapshot(of: home) == before)
        }
    }

    @Test("A repair that is killed at any moment leaves the keychain unchanged or repaired, and can be repeated")
    func killed() throws {
        let tally = try KillHarness(scenario: RepairOperation()).run(pointCount: Scale.pick(2, full: 8), callCount: Scale.pick(4, full: 40))
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }

    private struct RepairOperation: KillScenario {
        var request: String { "repair" }

        var systemCalls: [String] { ["fsync", "fdatasync", "link", "rename", "unlink", "ftruncate"] }

        func prepare(home: String) throws { try RepairTests.prepare(home: home) }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            let outcome: KillOutcome =
                try LocalKeychain(home: home).repair(applying: true)?.originalPath == nil ? .done : .nothingDone
            try RepairTests.expectAll(home, comment)
            return outcome
        }
    }
}
