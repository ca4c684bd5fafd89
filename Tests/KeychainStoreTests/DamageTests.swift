// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Damaged stores, and removal of old content")
struct DamageTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Changes the file without the store's checks.
    private func damage(_ sql: String) throws {
        try RawDatabase(directory.storePath).execute("PRAGMA ignore_check_constraints = ON; " + sql)
    }

    @Test(
        "A row with malformed columns is read in a form that cannot be opened",
        arguments: [
            "class = 77", "class = -1", "format_version = 300", "accessibility = 99", "class_key_generation = -1", "is_synchronizable = 2",
            "is_tombstone = 7", "revision = x'00'", "access_group_digest = x''", "attribute_digests = x'01'", "id = x'0011'",
        ])
    func malformedColumns(change: String) throws {
        let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])
        let store = try directory.makeStore()
        try store.insert([row, SampleRows.row(account: 2)])
        try damage("UPDATE items SET \(change) WHERE number = 1")
        let found = try store.rows(RowQuery(accessGroupDigests: [row.header.accessGroupDigest]))
        #expect(found.map(\.number) == [1, 2])
        #expect(found.first?.header.formatVersion == 0)
        #expect(found.last?.header.formatVersion == RowHeader.formatVersion)

        let outcome = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            try writing.quarantine(number: 1, at: 12)
        }
        guard case .written = outcome else {
            Issue.record("the keybag changed")
            return
        }
        #expect(try store.rows().map(\.number) == [2])
        let quarantined = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
        #expect(quarantined.count == 1)
        #expect(quarantined.first?.row.sealedSecret == row.sealedSecret)
        #expect(quarantined.first?.row.header.formatVersion == 0)
    }

    @Test("A damaged row can be replaced, and every search then finds it")
    func replacedAfterDamage() throws {
        let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])
        let store = try directory.makeStore()
        try store.insert([row])
        try damage("UPDATE items SET attribute_digests = x'01' WHERE number = 1")
        _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in try writing.replace(number: 1, with: row) }
        #expect(try store.rows(RowQuery(attributeDigests: row.header.attributeDigests)).map(\.header) == [row.header])
        #expect(try store.integrityProblems() == [])
    }

    @Test("A row missing from the attribute index is reported")
    func missingSearchEntry() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])])
        #expect(try store.integrityProblems() == [])
        try damage("DELETE FROM item_attributes")
        #expect(try store.integrityProblems() == [.missingFromIndex(row: 1)])
    }

    @Test("If one copy of the keybag is unreadable, the other is used")
    func keybagCopy() throws {
        let store = try directory.makeStore()
        try damage("DELETE FROM keybag")
        #expect(try store.keybag().copies == [ItemStoreContract.keybag.copies[0]])
        #expect(try store.integrityProblems().contains(.keybagCopiesDiffer))
        try damage("DELETE FROM keybag_copy")
        #expect(failure { () throws(KeychainFailure) in _ = try store.keybag() }?.status == .notAvailable)
    }

    @Test("Overwritten pages are reported as damage and nothing is repaired", arguments: [2, 3, 4, 5, 6])
    func overwrittenPage(page: UInt64) throws {
        do {
            let store = try directory.makeStore()
            try store.insert((1...200).map { SampleRows.row(account: $0) })
        }
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        try handle.seek(toOffset: (page - 1) * 4_096)
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 4_096))
        try handle.close()
        let problem = failure { () throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            let problems = try store.integrityProblems()
            if !problems.isEmpty { throw KeychainFailure(.notAvailable, problems.map(\.description).joined(separator: "\n")) }
        }
        #expect(problem?.status == .notAvailable)
    }

    @Test("No file contains overwritten or removed content")
    func remanence() throws {
        let marks = (1...3).map { [UInt8](repeating: UInt8($0) * 17, count: 64) + Array("mark \($0)".utf8) }
        func found() throws -> [Bool] {
            let contents = try directory.contents.values
            return marks.map { mark in contents.contains { $0.range(of: Data(mark)) != nil } }
        }
        func marked(_ account: UInt64, _ mark: [UInt8], likeness row: SealedRow? = nil) -> SealedRow {
            var row = row ?? SampleRows.row(account: account)
            row.sealedSecret = Array(repeating: mark, count: 80).flatMap(\.self)
            return row
        }
        do {
            let store = try directory.makeStore()
            try store.insert([marked(1, marks[0]), marked(2, marks[1])])
        }
        #expect(try found() == [true, true, false])
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            let first = try #require(try store.rows().first)
            _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
                try writing.replace(number: 1, with: marked(1, marks[2], likeness: first))
                try writing.remove(number: 2)
            }
        }
        #expect(try found() == [false, false, true])
    }

    @Test("The next opening finishes a pending scrub: it empties the -wal file, then clears the mark")
    func scrub() throws {
        // Another connection stays open, so that closing does not empty the -wal file.
        let other = try directory.makeStore()
        try other.insert([SampleRows.row(account: 1)])
        try damage("UPDATE meta SET scrub_pending = 42")
        _ = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try RawDatabase(directory.storePath).integer("SELECT scrub_pending FROM meta") == 0)
    }

    @Test("A scrub stays pending while a reader prevents it")
    func scrubPostponed() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        try damage("UPDATE meta SET scrub_pending = 42")
        let reader = try RawDatabase(directory.storePath)
        try reader.execute("BEGIN")
        _ = try reader.integer("SELECT scrub_pending FROM meta")
        try store.insert([SampleRows.row(account: 2)])
        _ = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try RawDatabase(directory.storePath).integer("SELECT scrub_pending FROM meta") == 42)
        try reader.execute("COMMIT")
        _ = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try RawDatabase(directory.storePath).integer("SELECT scrub_pending FROM meta") == 0)
    }

    @Test("A hole of any size after the last page is neither searched for damage nor copied", arguments: [false, true])
    func hole(countsPages: Bool) throws {
        do {
            let store = try directory.makeStore()
            try store.insert((1...20).map { SampleRows.row(account: $0) })
        }
        let byteCount: Int64 = 200 << 30
        if countsPages {
            // The number of pages in the header includes the hole.
            let file = try FileHandle(forUpdating: URL(filePath: directory.storePath))
            var page = try [UInt8](#require(try file.read(upToCount: 4_096)))
            for index in 0..<4 { page[28 + index] = UInt8(truncatingIfNeeded: (byteCount / 4_096) >> (24 - 8 * index)) }
            PageChecksums.writeChecksum(into: &page, number: 1)
            try file.seek(toOffset: 0)
            try file.write(contentsOf: page)
            try file.close()
        }
        try FileSystem.truncate(directory.storePath, toByteCount: byteCount)
        let damage = try SQLiteItemStore.damage(at: directory.storePath)
        #expect(damage.pages.count == (countsPages ? 1_000 : 0))
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            let problems = try store.integrityProblems()
            #expect(problems.isEmpty != countsPages, "\(problems.prefix(3))")
            #expect(try store.hasDamagedPages() == countsPages)
            #expect(try store.rows().count == 20)
        }
        let isAccepted = try? StoreRepair(directory.storePath).run(originalSuffix: ".before") { copy throws(KeychainFailure) in
            let copied = try? FileStatus(of: copy.path).byteCount
            #expect(copied ?? .max < 64 << 20)
            return false
        }
        #expect(isAccepted != .done(original: directory.storePath + ".before"))
    }
}
