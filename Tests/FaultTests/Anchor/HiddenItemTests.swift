// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Hidden items and a damaged structure are noticed when the keychain is used", .blocking)
struct HiddenItemTests {
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
            "DROP INDEX items_service", "CREATE TABLE another (a)", "ALTER TABLE meta ADD COLUMN another INTEGER",
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
        try withTemporaryDirectory(inMemory: true) { directory in
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

    @Test("Two tables with one root page are an altered schema")
    func sharedRootPage() throws {
        try TamperedHome.with { home in
            try home.add(1...3)
            try shareRootPage("SELECT rootpage FROM sqlite_schema WHERE name = 'items'", in: home)
            #expect(try home.problem() == .schemaAltered)
        }
    }
}
