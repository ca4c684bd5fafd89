// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Testing

@Suite("What is readable of a keychain whose content is refused can be saved", .blocking)
struct SavingRefusedContentTests {
    @Test(
        "Content that is refused and damaged as well cannot be accepted, but what is readable can be saved",
        arguments: [nil, "swordfish"], [false, true])
    func refusedAndDamaged(passcode: String?, isOlder: Bool) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = TamperedHome(home: directory)
            do {
                let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
                if let passcode { try keychain.set(passcode) }
                for number in 1...40 { try keychain.addItem("account \(number)", "secret \(number)") }
                if isOlder {
                    try keychain.snapshot(toPath: directory + "/old", replacing: false)
                    try keychain.addItem("account 41", "secret 41")
                }
            }
            try home.emptyLog()
            if isOlder {
                try home.copy(directory + "/old", to: home.database)
            } else {
                try home.edit("UPDATE meta SET keybag_generation = 99")
            }
            // The last leaf page of a table (type 13) that has several rows.
            var bytes = try Data(contentsOf: URL(filePath: home.database))
            var damaged = 0
            for start in stride(from: 0, to: bytes.count, by: 4096) where bytes[start] == 13 && bytes[start + 4] > 1 { damaged = start }
            bytes.replaceSubrange(damaged + 4000..<damaged + 4016, with: repeatElement(0x58, count: 16))
            try bytes.write(to: URL(filePath: home.database))
            let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
            for isApplied in [false, true] {
                let failure = #expect(throws: KeychainFailure.self) { try keychain.acceptContent(applying: isApplied) }
                #expect(failure?.isDamage == true && failure?.remedy == .saveRefused, "\(String(describing: failure))")
            }
            #expect(try keychain.backupOfRefusedContentNeedsPasscode() == (passcode != nil))
            let summary = try keychain.createBackupOfRefusedContent(
                atPath: directory + "/backup", password: Passcode(text: "a password"), replacing: false,
                passcode: passcode.map { try Passcode(text: $0) })
            #expect(summary.savedCount > 0 && summary.unreadableCount > 0 && summary.savedCount + summary.unreadableCount == 40)
            #expect(try Data(contentsOf: URL(filePath: home.database)) == bytes)
        }
    }

    @Test(
        "What is readable can be saved after a program without page checksums has changed the content",
        arguments: [
            ("DELETE FROM items WHERE number = 3", 39), ("UPDATE meta SET keybag_generation = 9", 40),
            ("UPDATE items SET sealed_secret = randomblob(length(sealed_secret)) WHERE number = 3", 39),
        ])
    func writtenWithoutChecksums(sql: String, savedCount: Int) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = TamperedHome(home: directory)
            try home.add(1...40)
            try RawDatabase(home.database, stamps: false).execute(sql)
            let keychain = try LocalKeychain.withCheapPasscode(home: directory)
            let report = try #require(try keychain.repair(applying: true))
            #expect(!report.objections.isEmpty && report.originalPath == nil)
            #expect(throws: KeychainFailure.self) { try keychain.acceptContent(applying: true) }
            let before = try Data(contentsOf: URL(filePath: home.database))
            let summary = try keychain.createBackupOfRefusedContent(
                atPath: directory + "/backup", password: Passcode(text: "a password"), replacing: false, passcode: nil)
            #expect(summary.savedCount == savedCount && summary.savedCount + summary.unreadableCount == 40)
            #expect(summary.isOfLastChange == (savedCount == 40))
            #expect(try Data(contentsOf: URL(filePath: home.database)) == before)
        }
    }

    /// A page without its checksum can look like one with fewer rows, or be that of other rows.
    @Test(
        "What a damaged page hides is counted when a refused keychain is saved", arguments: ["cell count", "child pointer", "older page"])
    func hiddenByDamage(_ damage: String) throws {
        try TamperedHome.with { home in
            try home.add(1...150)
            let older = try Data(contentsOf: URL(filePath: home.database))
            for number in 1...150 { try home.use { try $0.updateItem("account \(number)", to: "new \(number)") } }
            var bytes = try Data(contentsOf: URL(filePath: home.database))
            // The tables of leaves (type 13) and of other pages (type 5) with several cells.
            let pages = stride(from: 4096, to: bytes.count, by: 4096)
            let leaf = try #require(pages.first { bytes[$0] == 13 && bytes[$0 + 3] == 0 && bytes[$0 + 4] > 2 })
            switch damage {
            case "cell count": bytes[leaf + 4] -= 2
            case "child pointer":
                let root = try #require(pages.first { bytes[$0] == 5 && bytes[$0 + 4] > 2 })
                // A cell of such a page begins with the number of the child.
                let cells = [root + 12, root + 14].map { root + Int(bytes[$0]) << 8 + Int(bytes[$0 + 1]) }
                bytes.replaceSubrange(cells[0]..<cells[0] + 4, with: bytes[cells[1]..<cells[1] + 4])
            default: bytes.replaceSubrange(leaf..<leaf + 4080, with: older[leaf..<leaf + 4080])
            }
            try bytes.write(to: URL(filePath: home.database))
            let keychain = try LocalKeychain.withCheapPasscode(home: home.home)
            let summary = try keychain.createBackupOfRefusedContent(
                atPath: home.home + "/backup", password: Passcode(text: "a password"), replacing: false, passcode: nil)
            #expect(!summary.isOfLastChange && summary.savedCount + summary.unreadableCount == 150, "\(summary)")
            #expect(summary.savedCount > 100 && (damage == "older page" || summary.savedCount < 150), "\(summary)")
        }
    }

    /// SQLite reads nothing of a store with unreachable changes, and a repair discards them only if nothing else is wrong.
    @Test(
        "What is readable can be saved from a file with unreachable changes, which keeps them",
        arguments: ["only the log", "page", "removed row", "other file", "longer file"])
    func unreachableChanges(damage: String) throws {
        try TamperedHome.with { home in
            try home.add(1...30)
            try home.copy(home.database, to: home.home + "/older")
            try home.add(31...60)
            try home.addInKilledProcess(from: 1, count: 6)
            var log = try Data(contentsOf: URL(filePath: home.log))
            log[32 + 4_120 * (log.count / 4_120 / 2) + 124] ^= 1
            try home.removeLog()
            switch damage {
            case "page":
                var bytes = try Data(contentsOf: URL(filePath: home.database))
                let leaf = try #require(stride(from: 4096, to: bytes.count, by: 4096).first { bytes[$0] == 13 && bytes[$0 + 4] > 2 })
                bytes.replaceSubrange(leaf + 4000..<leaf + 4016, with: repeatElement(0x58, count: 16))
                try bytes.write(to: URL(filePath: home.database))
            case "removed row": try home.edit("DELETE FROM items WHERE number = 3")
            case "longer file":
                let handle = try #require(FileHandle(forWritingAtPath: home.database))
                try handle.seekToEnd()
                try handle.write(contentsOf: Data([1, 2, 3]))
                try handle.close()
            case "other file": try home.copy(home.home + "/older", to: home.database)
            default: break
            }
            try log.write(to: URL(filePath: home.log))
            let before = try [home.database, home.log].map { try Data(contentsOf: URL(filePath: $0)) }
            let keychain = try LocalKeychain.withCheapPasscode(home: home.home)
            if damage == "longer file" {
                #expect(throws: KeychainFailure.self) { try keychain.repair(applying: true, discardingUnreachableChanges: true) }
            } else if damage != "only the log" {
                let report = try keychain.repair(
                    applying: true, discardingUnreachableChanges: true, acceptingOlder: true, acceptingKeybag: true)
                #expect(report?.objections.isEmpty == false && report?.originalPath == nil)
            }
            let summary = try keychain.createBackupOfRefusedContent(
                atPath: home.home + "/backup", password: Passcode(text: "a password"), replacing: false, passcode: nil)
            #expect(!summary.isOfLastChange && summary.savedCount >= 25, "\(summary)")
            #expect(summary.savedCount + summary.unreadableCount >= 60, "\(summary)")
            #expect(!["only the log", "longer file"].contains(damage) || summary.unreadableCount == 0, "\(summary)")
            #expect(try [home.database, home.log].map { try Data(contentsOf: URL(filePath: $0)) } == before)
            // Neither is the index, in which other connections would find the wrong end of the log.
            #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home.home).secret(of: "account 1") }
        }
    }

    @Test("A saving beside a process that adds items reports no damage")
    func besideWriter() throws {
        try TamperedHome.with { home in
            try home.add(1...20)
            let child = try ChildProcess(
                BuiltProgram.path(of: "KeychainTestChild"), ["sets-until-killed", "1"], environment: ["KEYCHAIN_HOME": home.home])
            defer {
                child.send(signal: SIGKILL)
                _ = try? child.waitUntilEnded()
            }
            let keychain = try LocalKeychain.withCheapPasscode(home: home.home)
            for round in 1...10 {
                while let line = try child.readLine(), line != "ack \(round * 5)" {}
                let summary = try keychain.createBackupOfRefusedContent(
                    atPath: home.home + "/backup", password: Passcode(text: "a password"), replacing: true, passcode: nil)
                #expect(summary.unreadableCount == 0 && summary.savedCount > 20, "\(summary)")
            }
        }
    }

    @Test("A saving beside changes of the keys saves every item")
    func besideRotation() async throws {
        let directory = try TemporaryDirectory()
        let home = directory.path
        let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
        try keychain.set("swordfish")
        for number in 1...100 { try keychain.addItem("account \(number)", "secret \(number)") }
        // Each saving begins with one change.
        let startedCount = Atomic(0)
        let isSaving = Atomic(true)
        let rotate: @Sendable () -> [BackupSummary] = {
            var changedCount = 0
            while isSaving.load(ordering: .acquiring) {
                guard startedCount.load(ordering: .acquiring) > changedCount else { continue }
                changedCount += 1
                try? keychain.changePasscode(
                    from: Passcode(text: "swordfish"), to: Passcode(text: "swordfish"), rotatingKeys: true, autoLock: .standard)
            }
            return []
        }
        let save: @Sendable () -> [BackupSummary] = {
            defer { isSaving.store(false, ordering: .releasing) }
            return (0..<20).compactMap { _ in
                startedCount.add(1, ordering: .acquiringAndReleasing)
                return try? LocalKeychain.withCheapPasscode(home: home, holder: .processMemory).createBackupOfRefusedContent(
                    atPath: home + "/backup", password: Passcode(text: "a password"), replacing: true, passcode: Passcode(text: "swordfish")
                )
            }
        }
        let summaries = await onThreads([rotate, save]).flatMap { $0 }
        #expect(summaries.count == 20)
        #expect(summaries.allSatisfy { $0.savedCount == 100 && $0.unreadableCount == 0 && $0.isOfLastChange }, "\(summaries)")
    }
}
