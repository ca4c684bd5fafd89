// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Files changed by other programs are noticed when the keychain is opened", .blocking)
struct TamperingTests {
    @Test("An untouched keychain opens, also after a process was killed")
    func untouched() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            #expect(try home.problem() == nil)
            try home.addInKilledProcess(from: 1, count: 3)
            #expect(try home.problem() == nil)
            #expect(try LocalKeychain(home: home.home).acceptContent(applying: true) == nil)
        }
    }

    @Test("An older copy of the file")
    func olderCopy() throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(3...5)
            try home.copy(home.home + "/old", to: home.database)
            #expect(try home.problem() == .rolledBack(missingChangeCount: 3))
            try home.accept()
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try LocalKeychain(home: home.home).secret(of: "account 3") }
        }
    }

    @Test("An older copy of the file under a new inode, without the items that it lacks")
    func replacedByOlderFile() throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(3...3)
            try FileManager.default.removeItem(atPath: home.database)
            try FileManager.default.copyItem(atPath: home.home + "/old", toPath: home.database)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: home.database)
            #expect(try home.problem() == .rolledBack(missingChangeCount: 1))
        }
    }

    @Test("A copy that was changed separately, with as many changes")
    func diverged() throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.copy(home.database, to: home.home + "/common")
            try home.add(3...3)
            let anchors = try Self.anchors(home)
            try home.copy(home.database, to: home.home + "/first")
            // The other line of changes knows nothing of the first one.
            try home.copy(home.home + "/common", to: home.database)
            for anchor in anchors { try FileManager.default.moveItem(atPath: anchor, toPath: anchor + ".aside") }
            try home.add(4...4)
            for anchor in anchors {
                try FileManager.default.removeItem(atPath: anchor)
                try FileManager.default.moveItem(atPath: anchor + ".aside", toPath: anchor)
            }
            #expect(try home.problem() == .diverged)
            try home.copy(home.home + "/first", to: home.database)
            #expect(try home.problem() == nil)
        }
    }

    private static func anchors(_ home: TamperedHome) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: home.home + "/keys").filter { $0.hasSuffix(".anchor") }
            .map { home.home + "/keys/" + $0 }
    }

    @Test("Rows removed and added by SQL, with correct page checksums")
    func rowsRemoved() throws {
        try TamperedHome.with { home in
            try home.add(1...4)
            try home.edit("CREATE TABLE side.rows AS SELECT * FROM items WHERE number = 4")
            #expect(try home.problem() == nil)
            try home.use { try $0.deleteItem("account 4") }
            try home.edit("INSERT INTO items SELECT * FROM side.rows")
            #expect(try home.problem() == .rowsChanged(count: 4, expectedCount: 3))
            try home.edit("DELETE FROM items WHERE number IN (2, 3, 4)")
            #expect(try home.problem() == .rowsChanged(count: 1, expectedCount: 3))
            try home.accept()
        }
    }

    @Test("An older version of a row")
    func olderRow() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try home.edit("CREATE TABLE side.held AS SELECT * FROM items WHERE number = 2")
            try home.use { try $0.updateItem("account 2", to: "a new secret") }
            let columns = ["revision", "wrapped_item_key", "tag", "sealed_attributes", "sealed_secret"]
            let assignments = columns.map { "\($0) = (SELECT \($0) FROM held)" }.joined(separator: ", ")
            try home.edit("UPDATE items SET \(assignments) WHERE number = 2; DROP TABLE held")
            #expect(try home.problem() == .rowsChanged(count: 3, expectedCount: 3))
            try home.accept()
            #expect(try LocalKeychain(home: home.home).secret(of: "account 2") == "secret 2")
        }
    }

    @Test("An altered row tag")
    func tagAltered() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try home.edit("UPDATE items SET tag = randomblob(32) WHERE number = 2")
            #expect(try home.problem() == .rowsChanged(count: 3, expectedCount: 3))
        }
    }

    @Test("Rows removed from a process's files while it runs are noticed by the next one, although the first one wrote again")
    func rowsRemovedMeanwhile() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            let keychain = LocalKeychain(home: home.home)
            try keychain.addItem("account 4", "secret 4")
            try home.edit("DELETE FROM items WHERE number = 2")
            try keychain.addItem("account 5", "secret 5")
            #expect(try home.problem() == .rowsChanged(count: 4, expectedCount: 5))
            withExtendedLifetime(keychain) {}
        }
    }

    @Test("A -wal file that was removed after a process was killed")
    func logRemoved() throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.addInKilledProcess(from: 1, count: 5)
            try home.removeLog()
            let problem = try #require(try home.problem())
            switch problem {
            // The child may have written once more after its last acknowledgement.
            case .logRemoved(let count): #expect(count >= 10)
            // If it was killed between a commit and the write of its anchor.
            case .rolledBack(let count): #expect(count >= 9)
            default: Issue.record("\(problem)")
            }
            try home.accept()
        }
    }

    @Test("A -wal file of an earlier moment")
    func olderLog() throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.addInKilledProcess(from: 1, count: 3)
            try home.copy(home.log, to: home.home + "/log")
            try home.addInKilledProcess(from: 10, count: 3)
            try home.copy(home.home + "/log", to: home.log)
            let problem = try #require(try home.problem())
            guard case .rolledBack = problem else {
                Issue.record("\(problem)")
                return
            }
        }
    }

    @Test("An older database beside a newer -wal file")
    func olderDatabase() throws {
        try TamperedHome.with { home in
            // More items than one page holds.
            try home.add(1...60)
            try home.copy(home.database, to: home.home + "/old")
            try home.use { try $0.updateItem("account 2", to: "a new secret") }
            try home.addInKilledProcess(from: 1, count: 1)
            try home.copy(home.home + "/old", to: home.database)
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home.home).addItem("another", "secret") }
            #expect(failure?.isDamage == true)
        }
    }

    /// An older keybag has an older passcode, or none.
    @Test(
        "An older keybag is refused, whatever the state of its other copy, until a person accepts it",
        arguments: [
            "UPDATE keybag_copy SET bytes = (SELECT bytes FROM held)", "UPDATE keybag_copy SET bytes = zeroblob(length(bytes))",
            "DELETE FROM keybag_copy",
        ], [true, false])
    func olderKeybag(otherCopy: String, changesGeneration: Bool) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
            let home = TamperedHome(home: directory)
            try keychain.addItem("account 1", "secret 1")
            try home.edit("CREATE TABLE side.held AS SELECT bytes, (SELECT keybag_generation FROM meta) AS generation FROM keybag")
            try keychain.set("swordfish")
            try home.edit("UPDATE keybag SET bytes = (SELECT bytes FROM held); \(otherCopy)")
            if changesGeneration { try home.edit("UPDATE meta SET keybag_generation = (SELECT generation FROM held)") }
            try home.edit("DROP TABLE held")
            #expect(try home.problem() == .keybagReplaced)
            #expect(try LocalKeychain(home: directory).repair(applying: true)?.originalPath == nil)
            let snapshot = directory + "/snapshot"
            for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: home.database + suffix) {
                try Data(contentsOf: URL(filePath: home.database + suffix)).write(to: URL(filePath: snapshot + suffix))
            }
            #expect(throws: KeychainFailure.self) { try LocalKeychain(home: directory).restoreSnapshot(fromPath: snapshot, applying: true) }
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: directory).acceptContent(applying: true) }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            #expect(try home.problem() == .keybagReplaced)
            try home.accept(keybag: true)
            #expect(try !LocalKeychain(home: directory).sessionStatus().isPasscodeSet)
            withExtendedLifetime(keychain) {}
        }
    }

    /// Every process would wait for the keybag of that generation, and could write nothing.
    @Test("An altered generation of the keybag is accepted without accepting another keybag", arguments: [0, 2, 1_000, -1])
    func keybagGenerationAltered(_ generation: Int) throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            try home.edit("UPDATE meta SET keybag_generation = \(generation)")
            #expect(try home.problem() == .keybagGenerationAltered)
            try home.accept()
            #expect(try LocalKeychain(home: home.home).secret(of: "account 2") == "secret 2")
        }
    }

    @Test("A file from before the passcode does not remove the passcode")
    func passcodeRemoved() throws {
        try withLocalKeychain { keychain, path in
            let home = TamperedHome(home: path)
            // Closing a keychain empties its -wal file.
            try LocalKeychain.withCheapPasscode(home: path).addItem("account 1", "secret 1")
            try home.copy(home.database, to: path + "/old")
            try LocalKeychain.withCheapPasscode(home: path).set("swordfish")
            try home.copy(home.database, to: path + "/new")
            try home.copy(path + "/old", to: home.database)
            let problem = try #require(try home.problem())
            guard case .rolledBack = problem else {
                Issue.record("\(problem)")
                return
            }
            // With the newest file, the keychain opens again.
            try home.copy(path + "/new", to: home.database)
            #expect(try keychain.sessionStatus().isPasscodeSet)
        }
    }

    @Test(
        "A state that was altered, removed, or taken from an earlier moment",
        arguments: ["zeroblob(length(state))", "NULL", "(SELECT state FROM held)"])
    func stateAltered(_ value: String) throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            try home.edit("CREATE TABLE side.held AS SELECT state FROM meta")
            try home.add(2...2)
            try home.edit("UPDATE meta SET state = \(value); DROP TABLE held")
            #expect(try home.problem() == (value.contains("held") ? .mixed : .unauthentic))
            // Without the state, nothing says which keybag was stored last.
            try home.accept(keybag: !value.contains("held"))
        }
    }

    /// One write later, the anchor would count the changes of the older content.
    @Test("If a program puts older rows and their state back beside a running process, the next write of that process is refused")
    func rolledBackBesideProcess() throws {
        try TamperedHome.with { home in
            let keychain = LocalKeychain(home: home.home)
            try keychain.addItem("account 1", "secret 1")
            try home.edit("CREATE TABLE side.rows AS SELECT * FROM items; CREATE TABLE side.meta AS SELECT * FROM meta")
            try keychain.addItem("account 2", "secret 2")
            try home.edit(
                """
                DELETE FROM items; INSERT INTO items SELECT * FROM side.rows;
                UPDATE meta SET state = (SELECT state FROM side.meta)
                """)
            for _ in 1...3 {
                let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("account 3", "secret 3") }
                #expect(failure?.cause == .unexpectedState(.rolledBack(missingChangeCount: 1)))
            }
            #expect(try home.problem() == .rolledBack(missingChangeCount: 1))
            #expect(try LocalKeychain(home: home.home).acceptContent(applying: false)?.isKeybagReplaced == false)
        }
    }

    /// The -wal file of a killed process is not part of the snapshot, and SQLite would apply it to the restored file.
    @Test(
        "A restoration that is killed leaves the original, a refusal, or the snapshot, and can be repeated", .requiresStrace,
        arguments: Scale.pick(["rename"], full: ["link", "unlink", "rename", "fdatasync", "fsync"]))
    func interruptedRestoration(systemCall: String) throws {
        var outcomes: Set<String> = []
        for position in 1...40 {
            let isKilled = try TamperedHome.with { home in
                try home.add(1...6)
                try home.use { try $0.snapshot(toPath: home.home + "/snapshot", replacing: false) }
                try home.use { keychain in for number in 1...4 { try keychain.deleteItem("account \(number)") } }
                try home.add(41...50)
                try home.addInKilledProcess(from: 1, count: 4)
                // With a reader, closing another connection leaves the -wal file.
                let reader = LocalKeychain(home: home.home)
                #expect(try home.contains(50, reader))
                defer { withExtendedLifetime(reader) {} }
                let restore = [try BuiltProgram.path(of: "valet"), "backup", "restore-snapshot", home.home + "/snapshot", "--yes"]
                let environment = ["KEYCHAIN_HOME": home.home, "KEYCHAIN_PINENTRY": ""]
                let injection = "inject=\(systemCall):signal=KILL:when=\(position)"
                let kill = ["-f", "-o", "/dev/null", "-e", "trace=\(systemCall)", "-e", injection]
                let run = try ChildProcess.run("strace", kill + restore, environment: environment)
                do throws(KeychainFailure) {
                    let keychain = LocalKeychain(home: home.home)
                    let isSnapshot = try home.contains(1, keychain)
                    #expect(try home.contains(50, keychain) == !isSnapshot, "\(systemCall) \(position)")
                    outcomes.insert(isSnapshot ? "snapshot" : "original")
                } catch {
                    // The -wal file is missing: the reader still has it and restores it, or the state shows that.
                    guard error.status == .notAvailable else { throw error }
                    outcomes.insert("refusal")
                }
                guard run.ending != .exited(0) else { return false }
                let again = try ChildProcess.run(restore[0], Array(restore.dropFirst()), environment: environment)
                #expect(again.ending == .exited(0), "\(again.output)")
                let keychain = LocalKeychain(home: home.home)
                #expect(try home.contains(1, keychain) && !home.contains(50, keychain))
                #expect(try keychain.verify(purgingQuarantine: false).isSound)
                return true
            }
            if !isKilled { break }
        }
        #expect(outcomes.contains("snapshot"))
    }

    @Test("An older file whose -wal file was damaged is not repaired as one that lost only the unreachable changes")
    func olderFileWithDamagedLog() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try home.addInKilledProcess(from: 1, count: 6)
            for path in [home.database, home.log] { try home.copy(path, to: path + ".old") }
            try home.add(11...18)
            var log = try Data(contentsOf: URL(filePath: home.log + ".old"))
            log[32 + 4_120 * (log.count / 4_120 / 2) + 124] ^= 1
            try home.copy(home.database + ".old", to: home.database)
            try log.write(to: URL(filePath: home.log))
            let report = try LocalKeychain(home: home.home).repair(
                applying: true, discardingUnreachableChanges: true, acceptingKeybag: true)
            #expect(report?.isOlder == true && report?.objections == [] && report?.originalPath == nil)
            // Damage can also hide more changes than can be counted, so a person can accept that.
            let accepted = try LocalKeychain(home: home.home).repair(
                applying: true, discardingUnreachableChanges: true, acceptingOlder: true, acceptingKeybag: true)
            #expect(accepted?.originalPath != nil)
            #expect(try home.problem() == nil)
        }
    }

    @Test(
        "An older file whose keybag is damaged as well can be accepted",
        arguments: ["UPDATE keybag_copy SET bytes = zeroblob(50)", "UPDATE meta SET state = zeroblob(10); DELETE FROM keybag_copy"])
    func olderFileWithDamagedKeybag(_ sql: String) throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            try home.copy(home.database, to: home.home + "/old")
            try home.add(2...2)
            try home.copy(home.home + "/old", to: home.database)
            try home.edit(sql)
            #expect(try home.problem() != nil)
            #expect(try LocalKeychain(home: home.home).acceptContent(applying: true, acceptingKeybag: true) != nil)
            #expect(try home.problem() == nil)
            #expect(try LocalKeychain(home: home.home).report().store?.damagedKeybagCopyCount == 0)
        }
    }

    @Test("A whole file from before a change of the passcode is accepted only together with its keys")
    func olderFileWithOlderKeybag() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = TamperedHome(home: directory)
            try LocalKeychain.withCheapPasscode(home: directory).addItem("account 1", "secret 1")
            try home.copy(home.database, to: directory + "/old")
            try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory).set("swordfish")
            try home.copy(directory + "/old", to: home.database)
            #expect(try home.problem() != nil)
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: directory).acceptContent(applying: true) }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            try home.accept(keybag: true)
        }
    }

    /// Otherwise a new class key could get the number of the lost one, and the items under the lost one would look damaged.
    @Test("Items under keys that an accepted older keybag does not have are kept, also after a passcode was set", arguments: [false, true])
    func keysOfLostKeybag(rotates: Bool) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = TamperedHome(home: directory)
            func perform(_ body: (LocalKeychain) throws -> Void) throws {
                try body(LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory))
            }
            let backup = directory + "/backup"
            try perform { keychain in
                try keychain.addItem("account 1", "secret 1")
                _ = try keychain.createBackup(atPath: backup, password: Passcode(text: "a password"), replacing: false)
            }
            try home.edit("CREATE TABLE side.held AS SELECT bytes FROM keybag")
            try perform { keychain in
                try keychain.set("swordfish")
                try keychain.addItem("account 2", "secret 2")
            }
            try home.edit("UPDATE keybag SET bytes = (SELECT bytes FROM held); DELETE FROM keybag_copy; DROP TABLE held")
            try perform { _ = try $0.acceptContent(applying: true, acceptingKeybag: true) }
            try perform { keychain in
                try keychain.set("1234567")
                if rotates {
                    try keychain.changePasscode(
                        from: Passcode(text: "1234567"), to: Passcode(text: "swordfish"), rotatingKeys: true, autoLock: .standard)
                }
                for account in ["account 1", "account 2"] {
                    #expect(throws: KeychainFailure(.decode, "")) { try keychain.addItem(account, "new") }
                }
                let restored = try keychain.restoreBackup(atPath: backup, password: Passcode(text: "a password"), dryRun: false)
                #expect(restored.conflicts.map(\.reason) == [.unsupportedInKeychain])
                let report = try keychain.verify(purgingQuarantine: false)
                #expect(report.findings.count == 2 && report.findings.allSatisfy(\.needsOtherKeys) && report.quarantinedCount == 0)
                try keychain.addItem("account 3", "secret 3")
                #expect(try keychain.secret(of: "account 3") == "secret 3")
            }
        }
    }

    @Test("A program that is running while a snapshot is put back continues with the restored content")
    func runningDuringRestoration() throws {
        try TamperedHome.with { home in
            let running = LocalKeychain(home: home.home)
            try running.addItem("account 1", "secret 1")
            try running.snapshot(toPath: home.home + "/snapshot", replacing: false)
            try running.addItem("account 2", "secret 2")
            #expect(try LocalKeychain(home: home.home).restoreSnapshot(fromPath: home.home + "/snapshot", applying: true).isRestored)
            #expect(try LocalKeychain(home: home.home).secret(of: "account 1") == "secret 1")
            try running.addItem("account 3", "secret 3")
            #expect(try LocalKeychain(home: home.home).secret(of: "account 3") == "secret 3")
        }
    }

    /// The anchor is the one of the restored file, and the program still has the previous one open.
    @Test("A program that has the previous file open when it verifies a restored keychain takes it for no older copy")
    func verificationAfterRestoration() throws {
        try TamperedHome.with { home in
            let running = LocalKeychain(home: home.home)
            try running.addItem("account 1", "secret 1")
            try running.snapshot(toPath: home.home + "/snapshot", replacing: false)
            let other = LocalKeychain(home: home.home)
            #expect(try running.verify(purgingQuarantine: false).structuralProblems.isEmpty)
            #expect(try other.restoreSnapshot(fromPath: home.home + "/snapshot", applying: true).isRestored)
            try other.addItem("account 2", "secret 2")
            let report = try running.verify(purgingQuarantine: false)
            #expect(report.structuralProblems.isEmpty && report.checkedCount == 2)
        }
    }

    /// The -wal file loses its name before the file is replaced, and the process may be killed in between.
    @Test("The file that a snapshot replaces has every change without its -wal file")
    func restorationEmptiesLog() throws {
        try TamperedHome.with { home in
            let running = LocalKeychain(home: home.home)
            try running.addItem("account 1", "secret 1")
            try running.snapshot(toPath: home.home + "/snapshot", replacing: false)
            try running.addItem("account 2", "secret 2")
            let report = try LocalKeychain(home: home.home).restoreSnapshot(fromPath: home.home + "/snapshot", applying: true)
            let alone = home.home + "/alone"
            try home.copy(#require(report.originalPath), to: alone)
            #expect(try RawDatabase(alone).integer("SELECT count(*) FROM items") == 2)
            withExtendedLifetime(running) {}
        }
    }

    /// An older snapshot may have an older passcode, or none.
    @Test("A snapshot with another passcode is put back only if that is accepted", arguments: [false, true])
    func snapshotWithOtherPasscode(isStorePresent: Bool) throws {
        try withTemporaryDirectory { directory in
            let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
            try keychain.addItem("account 1", "secret 1")
            let snapshot = directory + "/snapshot"
            try keychain.snapshot(toPath: snapshot, replacing: false)
            try keychain.set("swordfish")
            let home = TamperedHome(home: directory)
            if !isStorePresent {
                for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home.database + suffix) }
            }
            let other = LocalKeychain(home: directory)
            let report = try other.restoreSnapshot(fromPath: snapshot, applying: false)
            #expect(report.hasOtherPasscode && !report.isPasscodeSet && !report.isRestored)
            let failure = #expect(throws: KeychainFailure.self) { try other.restoreSnapshot(fromPath: snapshot, applying: true) }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            #expect(FileManager.default.fileExists(atPath: home.database) == isStorePresent)
            #expect(try other.restoreSnapshot(fromPath: snapshot, applying: true, acceptingKeybag: true).isRestored)
            #expect(try other.secret(of: "account 1") == "secret 1")
            #expect(try !other.restoreSnapshot(fromPath: snapshot, applying: false).hasOtherPasscode)
            withExtendedLifetime(keychain) {}
        }
    }

    @Test("A repair of checksums does not accept removed rows")
    func repairRefuses() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try RawDatabase(home.database, stamps: false).execute("DELETE FROM items WHERE number = 2")
            let keychain = LocalKeychain(home: home.home)
            let report = try keychain.repair(applying: true)
            #expect(report?.objections.isEmpty == false && report?.originalPath == nil)
        }
    }
}
