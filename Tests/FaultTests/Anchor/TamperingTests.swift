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
        try withTemporaryDirectory { directory in
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

    /// Damage of one page prevents the comparison of the rows.
    @Test("Beside a damaged page, a removed item is not reported as missing, and is not added again")
    func removedBesideDamage() throws {
        try TamperedHome.with { home in
            try home.add(1...60)
            try RawDatabase(home.database, stamps: true).execute("DELETE FROM items WHERE number = 2")
            // The last leaf page of a table (type 13) that has several rows.
            var bytes = try Data(contentsOf: URL(filePath: home.database))
            var pages = stride(from: 0, to: bytes.count, by: 4096).makeIterator()
            var page = 0
            while let start = pages.next() { if bytes[start] == 13, bytes[start + 4] > 1 { page = start } }
            bytes.replaceSubrange(page + 4000..<page + 4016, with: repeatElement(0x58, count: 16))
            try bytes.write(to: URL(filePath: home.database))
            let keychain = LocalKeychain(home: home.home)
            #expect(try keychain.secret(of: "account 1") == "secret 1")
            for operation in [
                { _ = try keychain.secret(of: "account 2") }, { try keychain.addItem("account 2", "new") },
                { try keychain.deleteItem("account 2") },
            ] {
                let failure = #expect(throws: KeychainFailure.self) { try operation() }
                #expect(failure?.status == .notAvailable && failure?.isDamage == true)
            }
        }
    }

    @Test(
        "An altered definition of a table is noticed",
        arguments: [
            "CREATE TRIGGER dropped BEFORE INSERT ON items BEGIN SELECT RAISE(IGNORE); END", "CREATE VIEW other AS SELECT 1",
            "DROP INDEX items_account", "CREATE TABLE another (a)", "ALTER TABLE meta ADD COLUMN another INTEGER",
        ])
    func schemaAltered(_ sql: String) throws {
        try TamperedHome.with { home in
            try home.add(1...1)
            try home.edit("ANALYZE")
            #expect(try home.problem() == nil)
            try home.edit(sql)
            #expect(try home.problem() == .schemaAltered)
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home.home).acceptContent(applying: true) }
            #expect(failure?.cause == .unexpectedState(.schemaAltered))
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
        try withTemporaryDirectory { directory in
            let home = TamperedHome(home: directory)
            try LocalKeychain.withCheapPasscode(home: directory).addItem("account 1", "secret 1")
            try home.copy(home.database, to: directory + "/old")
            try LocalKeychain.withCheapPasscode(home: directory).set("swordfish")
            try home.copy(directory + "/old", to: home.database)
            #expect(try home.problem() != nil)
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: directory).acceptContent(applying: true) }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            try home.accept(keybag: true)
        }
    }

    /// How a program that knows the format hides a row without changing the sum of the tags.
    enum Hiding: CaseIterable {
        case alteredDigest, alteredDigestAndVersion, removedIndexEntry

        func hide(row number: Int, in home: TamperedHome) throws {
            switch self {
            case .alteredDigest: try home.edit("UPDATE items SET account_digest = randomblob(16) WHERE number = \(number)")
            case .alteredDigestAndVersion:
                try home.edit("UPDATE items SET format_version = 2, account_digest = randomblob(16) WHERE number = \(number)")
            case .removedIndexEntry:
                // An index that leaves the row out, and then a definition that does not say so.
                let change = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql ="
                let name = "WHERE name = 'items_primary_key'"
                try home.edit("\(change) sql || ' WHERE number <> \(number)' \(name)")
                try home.edit("REINDEX items_primary_key")
                try home.edit("\(change) replace(sql, ' WHERE number <> \(number)', '') \(name)")
            }
        }
    }

    @Test("A hidden row is not reported as missing, and is not added again", arguments: Hiding.allCases, [false, true])
    func hidden(_ hiding: Hiding, isAnchorBehind: Bool) throws {
        try TamperedHome.with { home in
            try home.add(1...2)
            if isAnchorBehind { try home.withoutAnchor { try home.add(3...3) } } else { try home.add(3...3) }
            try hiding.hide(row: 2, in: home)
            for isSecondOpening in [false, true] {
                let keychain = LocalKeychain(home: home.home)
                #expect(try keychain.secret(of: "account 1") == "secret 1")
                for operation in [{ _ = try keychain.secret(of: "account 2") }, { try keychain.addItem("account 2", "new") }] {
                    let failure = #expect(throws: KeychainFailure.self) { try operation() }
                    #expect(failure?.status == .notAvailable && failure?.isDamage == true, "\(isSecondOpening)")
                }
                #expect(try !keychain.verify(purgingQuarantine: false).isSound)
            }
        }
    }

    @Test(
        "An item that an altered column hides is counted by a backup, and a listing that has to be complete fails",
        arguments: [
            "is_tombstone = 1", "accessibility = 8", "accessibility = 99", "class = 2", "constraints = x'0103'", "format_version = 2",
            "access_group_digest = randomblob(16)",
        ])
    func omitted(_ change: String) throws {
        try withTemporaryDirectory { directory in
            let home = TamperedHome(home: directory)
            try home.add(1...3)
            try home.edit("UPDATE items SET \(change) WHERE number = 2")
            let keychain = try LocalKeychain.withCheapPasscode(home: directory)
            let summary = try keychain.createBackup(
                atPath: directory + "/backup", password: Passcode(text: "a password"), replacing: false)
            #expect(summary.savedCount == 2 && summary.unreadableCount == 1)
            let all = { isComplete in
                MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, failsIfUnreadable: isComplete)
            }
            #expect(try keychain.copyMatching(all(false)).count == 2)
            let failure = #expect(throws: KeychainFailure.self) { try keychain.copyMatching(all(true)) }
            #expect(failure?.status == .decode || failure?.status == .notAvailable, "\(String(describing: failure))")
        }
    }

    @Test(
        "Nothing is deleted by a deletion of several items that an altered column would survive",
        arguments: ["is_tombstone = 1", "class = 2", "access_group_digest = randomblob(16)"])
    func deletionBesideHidden(change: String) throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try home.edit("UPDATE items SET \(change) WHERE number = 2")
            let keychain = LocalKeychain(home: home.home)
            let failure = #expect(throws: KeychainFailure.self) {
                try keychain.delete(DeleteRequest(query: ItemQuery(itemClass: .genericPassword)))
            }
            #expect(failure?.isDamage == true)
            for number in [1, 3] { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
        }
    }

    /// SQLite refuses to read a value that is larger than the limit which the library sets.
    @Test("A row whose header names an impossible size is damaged, and hides no other")
    func impossibleSize() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try home.edit("UPDATE items SET sealed_secret = zeroblob(90000000) WHERE number = 2")
            let keychain = LocalKeychain(home: home.home)
            #expect(try keychain.secret(of: "account 1") == "secret 1")
            let failure = #expect(throws: KeychainFailure.self) { try keychain.secret(of: "account 2") }
            #expect(failure?.status != .parameter && (failure?.isDamage == true || failure?.cause == .damaged))
            #expect(try !keychain.verify(purgingQuarantine: false).isSound)
        }
    }

    /// Otherwise a new class key could get the number of the lost one, and the items under the lost one would look damaged.
    @Test("Items under keys that an accepted older keybag does not have are kept, also after a passcode was set", arguments: [false, true])
    func keysOfLostKeybag(rotates: Bool) throws {
        try withTemporaryDirectory { directory in
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

    /// Gives the quarantine another root page: one of a page that belongs to the items, or the items' own.
    private func shareRootPage(_ page: String, in home: TamperedHome) throws {
        try home.edit("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (\(page)) WHERE name = 'quarantine'")
    }

    @Test("Nothing is written to a file whose structure is damaged, and nothing is purged from it", arguments: [false, true])
    func damagedStructure(isAnchorBehind: Bool) throws {
        try TamperedHome.with { home in
            try home.add(1...39)
            if isAnchorBehind { try home.withoutAnchor { try home.add(40...40) } } else { try home.add(40...40) }
            let pages = "WITH RECURSIVE pages(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM pages, pragma_page_count WHERE n < page_count)"
            try shareRootPage("\(pages) SELECT n FROM pages WHERE n NOT IN (SELECT rootpage FROM sqlite_schema) LIMIT 1", in: home)
            let tampered = try Data(contentsOf: URL(filePath: home.database))
            let keychain = LocalKeychain(home: home.home)
            for number in 1...40 { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
            let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("account 1")]))
            let changes: [() throws -> Void] = [
                { try keychain.update(UpdateRequest(query: query, changes: ItemAttributes(), secret: Data("new".utf8))) },
                { try keychain.addItem("another", "secret") }, { try keychain.deleteItem("account 1") },
            ]
            for change in changes {
                let failure = #expect(throws: KeychainFailure.self) { try change() }
                #expect(failure?.isDamage == true && failure?.remedy == .saveReadable)
            }
            let report = try keychain.verify(purgingQuarantine: true)
            #expect(!report.isSound && !report.isQuarantinePurged)
            let refusal = #expect(throws: KeychainFailure.self) { try keychain.acceptContent(applying: true) }
            #expect(refusal?.remedy == .saveRefused)
            #expect(try Data(contentsOf: URL(filePath: home.database)) == tampered)
            for number in 1...40 { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
        }
    }

    @Test("Nothing is written to a keychain without items whose structure is damaged, at any later opening either")
    func damagedStructureWithoutItems() throws {
        try TamperedHome.with { home in
            try home.add(1...40)
            try home.use { keychain in for number in 1...40 { try keychain.deleteItem("account \(number)") } }
            let pages = "WITH RECURSIVE pages(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM pages, pragma_page_count WHERE n < page_count)"
            try shareRootPage("\(pages) SELECT n FROM pages WHERE n NOT IN (SELECT rootpage FROM sqlite_schema) LIMIT 1", in: home)
            for _ in 1...2 {
                let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home.home).addItem("account 1", "new") }
                #expect(failure?.isDamage == true && failure?.remedy == .saveReadable)
            }
        }
    }

    @Test("Nothing is written to a file with a damaged page: its structure is unknown")
    func damagedPage() throws {
        try TamperedHome.with { home in
            try home.add(1...40)
            var bytes = try Data(contentsOf: URL(filePath: home.database))
            bytes[bytes.count - 100] ^= 1
            try bytes.write(to: URL(filePath: home.database))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: home.database)
            let keychain = LocalKeychain(home: home.home)
            let readable = (1...40).filter { (try? keychain.secret(of: "account \($0)")) != nil }
            #expect(!readable.isEmpty && readable.count < 40)
            for number in readable {
                let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("account \(number)")]))
                let failure = #expect(throws: KeychainFailure.self) { try keychain.delete(DeleteRequest(query: query)) }
                #expect(failure?.isDamage == true && failure?.remedy == .saveReadable)
            }
            #expect(try Data(contentsOf: URL(filePath: home.database)) == bytes)
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

    @Test("Two tables with one root page are an altered schema")
    func sharedRootPage() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try shareRootPage("SELECT rootpage FROM sqlite_schema WHERE name = 'items'", in: home)
            #expect(try home.problem() == .schemaAltered)
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
