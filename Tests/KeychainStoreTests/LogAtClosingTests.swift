// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Foundation
import KeychainStore
import KeychainTesting
import Testing

/// Bringing what is in the -wal file into the database overwrites pages that, should the power fail meanwhile, are mended from the -wal file
/// alone: so it must be known to be on the disk.
@Suite("What is in the -wal file when the last connection is closed")
struct LogAtClosingTests {
    private let directory: TemporaryDirectory
    private let logName = "keychain.db-wal"

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A store as a process leaves it that was killed after a write.
    private func afterKill() throws -> TemporaryDirectory {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        return try FileCopies(of: directory).directory
    }

    @Test("Who only reads leaves it where it is")
    func reader() throws {
        let left = try afterKill()
        let before = try left.contents
        do {
            let store = try SQLiteItemStore(openingAt: left.storePath)
            #expect(try store.rows().count == 1)
            _ = try store.integrityProblems()
        }
        _ = try SQLiteItemStore.damage(at: left.storePath)
        let after = try left.contents
        #expect(after["keychain.db"] == before["keychain.db"])
        #expect(after[logName] == before[logName])
        #expect(after[logName]?.isEmpty == false)
    }

    @Test("Who writes makes it durable first, and then brings it into the database")
    func writer() throws {
        let left = try afterKill()
        do {
            let store = try SQLiteItemStore(openingAt: left.storePath)
            try store.insert([SampleRows.row(account: 2)])
        }
        #expect(try left.names == ["keychain.db"])
        #expect(try SQLiteItemStore(openingAt: left.storePath).rows().count == 2)
    }

    @Test("Who reads an empty one removes it")
    func emptyLog() throws {
        try directory.create()
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(try store.rows().isEmpty)
            #expect(try directory.names.contains(logName))
        }
        #expect(try directory.names == ["keychain.db"])
    }

    @Test("Who was told that a flush failed leaves it where it is")
    func failedFlush() throws {
        let disk = FaultyDisk(under: directory.path)
        let database: Data
        do {
            let store = try directory.makeStore(options: StoreOptions(vfsName: FaultyDisk.vfsName))
            try store.insert([SampleRows.row(account: 1)])
            database = try #require(try FileCopies(of: directory).directory.contents["keychain.db"])
            disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
            #expect(throws: (any Error).self) { try store.insert([SampleRows.row(account: 2)]) }
            disk.heal()
        }
        let after = try directory.contents
        #expect(after["keychain.db"] == database)
        #expect(after[logName]?.isEmpty == false)
    }
}
