// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("Repair of a store written by a program without page checksums", .blocking)
struct RepairTests {
    let directory: TemporaryDirectory
    let rows = (1...100).map { SampleRows.row(account: $0) }

    /// Makes the files that remain after a process was killed and another program was the last to close the store.
    init() throws {
        let original = try TemporaryDirectory()
        let store = try original.makeStore()
        try store.insert(rows)
        directory = try DirectoryCopy(of: original).directory
        let other = try RawDatabase(directory.storePath, stamps: false)
        #expect(try other.integer("SELECT count(*) FROM items") == rows.count)
    }

    private var kept: String { directory.storePath + ".before" }

    private func repair(
        path: String? = nil, _ accepts: (StoreRepair.Copy) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> StoreRepair.Outcome {
        let options = StoreOptions(busyTimeoutMilliseconds: 200)
        return try StoreRepair(path ?? directory.storePath, options: options).run(originalSuffix: ".before", accepts)
    }

    @Test("The store is refused as damaged, and every page has a valid checksum once a copy was accepted")
    func accepted() throws {
        #expect(try !PageChecksumTests.wrongPages(directory.storePath).isEmpty)
        let refusal = failure { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: directory.storePath).rows() }
        #expect(refusal?.isDamage == true && refusal?.remedy == .repair)
        let before = try directory.contents
        let outcome = try repair { copy throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: copy.path)
            defer { store.close() }
            #expect(copy.refusedPageCount > 0 && copy.pageCount >= copy.refusedPageCount)
            #expect(try store.rows().count == rows.count)
            return try store.integrityProblems().isEmpty
        }
        #expect(outcome == .done(original: kept))
        #expect(try directory.names == ["keychain.db", "keychain.db.before"])
        #expect(try directory.contents["keychain.db.before"] == before["keychain.db"])
        #expect(try PageChecksumTests.wrongPages(directory.storePath) == [])
        let mode = try FileManager.default.attributesOfItem(atPath: directory.storePath)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.insert([SampleRows.row(account: 200)])
        #expect(try store.rows().count == rows.count + 1)
        #expect(try store.integrityProblems() == [])
    }

    @Test("A rejected copy is removed, and the store is unchanged")
    func declined() throws {
        let before = try directory.contents
        #expect(try repair { _ in false } == .declined)
        #expect(try directory.contents == before)
        let failed = failure { () throws(KeychainFailure) in
            _ = try repair { _ throws(KeychainFailure) in throw KeychainFailure(.inputOutput, "judging failed") }
        }
        #expect(failed?.status == .inputOutput)
        #expect(try directory.contents == before)
    }

    @Test("The copy includes the content of the -wal file")
    func withLog() throws {
        let other = try RawDatabase(directory.storePath, stamps: false)
        try other.execute("UPDATE meta SET lock_epoch = 77")
        let copies = try DirectoryCopy(of: directory)
        #expect(try copies.directory.names.contains("keychain.db-wal"))
        let outcome = try repair(path: copies.directory.storePath) { copy throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: copy.path)
            defer { store.close() }
            let isSound = try store.integrityProblems().isEmpty
            let count = try store.rows().count
            return isSound && count == rows.count
        }
        #expect(outcome == .done(original: copies.directory.storePath + ".before"))
        #expect(try RawDatabase(copies.directory.storePath).integer("SELECT lock_epoch FROM meta") == 77)
        #expect(try PageChecksumTests.wrongPages(copies.directory.storePath) == [])
    }

    @Test("A page with changed content is still damaged in the copy")
    func damagedContent() throws {
        var bytes = try #require(FileManager.default.contents(atPath: directory.storePath))
        // The cell pointers of the root page of the items table.
        for offset in 4_096 + 8..<4_096 + 40 { bytes[offset] ^= 0x5A }
        try bytes.write(to: URL(fileURLWithPath: directory.storePath))
        try setMode(0o600, of: directory.storePath)
        let before = try directory.contents
        let outcome = try repair { copy throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: copy.path)
            defer { store.close() }
            return try store.integrityProblems().isEmpty
        }
        #expect(outcome == .declined)
        #expect(try directory.contents == before)
    }

    @Test("The copy omits changes that damage in the -wal file made unreachable, and reports their number")
    func damagedLog() throws {
        let original = try TemporaryDirectory()
        let store = try original.makeStore()
        for account in 1...UInt64(8) { try store.insert([SampleRows.row(account: account)]) }
        let directory = try DirectoryCopy(of: original).directory
        var log = try Data(contentsOf: URL(filePath: directory.storePath + "-wal"))
        // The damage is in the frame that ends the third transaction.
        let frames = stride(from: 32, to: log.count, by: 24 + 4_096)
        let commits = frames.filter { start in log[start + 4..<start + 8].contains { $0 != 0 } }
        log[commits[2] + 1_000] ^= 0x01
        try log.write(to: URL(filePath: directory.storePath + "-wal"))
        try setMode(0o600, of: directory.storePath + "-wal")
        var found = (rowCount: 0, unreachableCount: 0)
        let outcome = try repair(path: directory.storePath) { copy throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: copy.path)
            defer { store.close() }
            found = (try store.rows().count, copy.unreachableChangeCount)
            return try store.integrityProblems().isEmpty
        }
        #expect(found == (2, 6))
        #expect(outcome == .done(original: directory.storePath + ".before"))
        // The original file keeps the unreachable changes.
        #expect(try directory.contents["keychain.db.before-wal"] == log)
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().count == 2)
        withExtendedLifetime(store) {}
    }

    @Test("While another process has the store open, nothing is changed")
    func openElsewhere() throws {
        // Its locks are those of its own descriptors, like those of another process.
        var options = StoreOptions()
        options.verifiesContent = false
        let other = try SQLiteItemStore(openingAt: directory.storePath, options: options)
        #expect(try other.read { reading throws(KeychainFailure) in try reading.itemCount() } > 0)
        let refusal = failure { () throws(KeychainFailure) in _ = try repair { _ in true } }
        #expect(refusal?.status == .notAvailable && refusal?.remedy == .closeElsewhere)
        #expect(try directory.names.allSatisfy { !$0.contains("before") && !$0.contains("repair") })
        other.close()
    }

    @Test("Neither the store nor its replacement can be opened during a repair")
    func locked() throws {
        _ = try repair { _ throws(KeychainFailure) in
            let opened = failure { () throws(KeychainFailure) in
                _ = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(busyTimeoutMilliseconds: 50)).rows()
            }
            #expect(opened?.status == .notAvailable && opened?.isDamage == false)
            return false
        }
    }

    @Test("Files left by killed repairs are removed")
    func leftovers() throws {
        for suffix in ["", "-wal", "-shm"] {
            try Data("copy".utf8).write(to: URL(filePath: directory.path + "/.keychain.db.00ff.repair" + suffix))
        }
        #expect(try repair { _ in false } == .declined)
        #expect(try directory.names == ["keychain.db"])
    }

    @Test("An existing file with the name for the original is not replaced, and a sound store is not changed")
    func leftAlone() throws {
        try Data("mine".utf8).write(to: URL(fileURLWithPath: kept))
        #expect(try repair { _ in true } == .done(original: kept + "-2"))
        #expect(try directory.contents["keychain.db.before"] == Data("mine".utf8))
        let sound = try TemporaryDirectory()
        try sound.create()
        #expect(try repair(path: sound.storePath) { _ in true } == .notNeeded)
        #expect(try sound.names == ["keychain.db"])
    }

    @Test("A file that ends within a page is damaged, even if the caller would accept it")
    func cutOff() throws {
        let handle = try #require(FileHandle(forWritingAtPath: directory.storePath))
        try handle.truncate(atOffset: handle.seekToEnd() - 1_000)
        try handle.close()
        #expect(failure { () throws(KeychainFailure) in _ = try repair { _ in true } }?.isDamage == true)
        #expect(try directory.names == ["keychain.db"])
    }
}

@Suite("Repair of a damaged file header", .blocking)
struct HeaderRepairTests {
    /// The bytes 32 to 39 are about unused pages.
    @Test(
        "A store with a damaged byte in its header can be read and written after a repair", arguments: [0..<24, 24..<32, 40..<72, 72..<100])
    func damagedByte(offsets: Range<Int>) throws {
        let original = try TemporaryDirectory()
        let row = SampleRows.row(account: 1)
        let made = try original.makeStore()
        try made.insert([row])
        made.close()
        for offset in offsets {
            let directory = try DirectoryCopy(of: original).directory
            let file = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
            try file.seek(toOffset: UInt64(offset))
            let byte = try #require(try file.read(upToCount: 1)?.first)
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: [~byte])
            try file.close()
            let outcome = try StoreRepair(directory.storePath).run(originalSuffix: ".before") { _ in true }
            guard case .done = outcome else {
                Issue.record("byte \(offset): \(outcome)")
                continue
            }
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            defer { store.close() }
            try store.insert([SampleRows.row(account: 2)])
            #expect(try store.rows().count == 2 && store.integrityProblems().isEmpty, "byte \(offset)")
        }
    }
}
