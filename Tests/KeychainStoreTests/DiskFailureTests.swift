// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainCore
import KeychainStore
import KeychainTesting
import Testing

@Suite("When the disk fails")
struct DiskFailureTests {
    let directory: TemporaryDirectory
    let disk: FaultyDisk
    let store: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        disk = FaultyDisk(under: directory.path)
        store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 500, vfsName: FaultyDisk.vfsName))
        try store.insert([SampleRows.row(account: 1)])
    }

    private func insertFailure(_ account: UInt64) -> KeychainFailure? {
        failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: account)]) }
    }

    @Test("Every write is flushed before it is acknowledged")
    func flushes() throws {
        for account in 10..<30 {
            let before = disk.syncCount(of: .wal)
            try store.insert([SampleRows.row(account: UInt64(account))])
            #expect(disk.syncCount(of: .wal) > before)
        }
    }

    @Test("The test above can fail: with another setting there is no flush")
    func doesNotFlush() throws {
        let careless = try SQLiteItemStore(
            openingAt: directory.storePath, options: StoreOptions(synchronous: .normal, vfsName: FaultyDisk.vfsName))
        try careless.insert([SampleRows.row(account: 9)])
        let before = disk.syncCount(of: .wal)
        for account in 10..<30 { try careless.insert([SampleRows.row(account: UInt64(account))]) }
        #expect(disk.syncCount(of: .wal) == before)
    }

    @Test("A flush that fails leaves the outcome unknown, and says so")
    func unknownOutcome() throws {
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        let failure = insertFailure(2)
        #expect(failure?.status == .inputOutput)
        #expect(failure?.reason.contains("outcome unknown") == true)
    }

    @Test("After an unknown outcome a write is acknowledged only once everything before it was flushed again")
    func writesAgain() throws {
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        _ = insertFailure(2)
        #expect(insertFailure(3)?.status == .inputOutput, "the disk still fails")
        disk.heal()
        let before = disk.syncCount(of: .database)
        let row = SampleRows.row(account: 4)
        try store.insert([row])
        #expect(disk.syncCount(of: .database) > before, "what the failed flush left behind was not flushed elsewhere")
        #expect(try store.rows(RowQuery(id: row.header.reference.id)).count == 1)
        #expect(try store.integrityProblems() == [])
    }

    @Test("While others read old rows, nothing is acknowledged after an unknown outcome")
    func blockedAfterUnknownOutcome() throws {
        let other = try RawDatabase(directory.storePath)
        try other.run("BEGIN")
        _ = try other.integer("SELECT count(*) FROM items")
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        _ = insertFailure(2)
        disk.heal()
        #expect(insertFailure(3)?.status == .notAvailable)
        try other.run("COMMIT")
        try store.insert([SampleRows.row(account: 4)])
    }

    @Test("A full disk changes nothing, is named, and is over when there is room again")
    func full() throws {
        disk.fail(.wal, .write, with: SQLITE_FULL)
        let failure = insertFailure(2)
        #expect(failure?.status == .notAvailable)
        #expect(failure?.reason.contains("disk is full") == true)
        #expect(try store.rows().count == 1)
        disk.heal()
        try store.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
    }

    @Test("A write that fails on the way is undone")
    func writeError() throws {
        disk.fail(.wal, .write, with: SQLITE_IOERR | 3 << 8)
        #expect(insertFailure(2)?.status == .inputOutput)
        disk.heal()
        try store.insert([SampleRows.row(account: 3)])
        #expect(try store.integrityProblems() == [])
    }

    @Test("A body that passes over a failure does not get its write committed")
    func swallowedFailure() throws {
        let failure = failure { () throws(KeychainFailure) in
            _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
                try writing.insert(SampleRows.row(account: 2))
                disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
                disk.fail(.wal, .read, with: SQLITE_IOERR | 1 << 8)
                // Rows nobody has read yet lie on pages that are not in memory.
                _ = try? writing.quarantinedRows()
                disk.heal()
            }
        }
        #expect(failure?.status == .inputOutput)
        #expect(failure?.reason.contains("unknown") == false, "nothing was committed, and that is known")
        #expect(try store.rows().count == 1)
    }

    @Test("A page that cannot be read is an error, never 'not found'")
    func readError() throws {
        store.close()
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
        #expect(failure { () throws(KeychainFailure) in _ = try store.rows() }?.status == .inputOutput)
        disk.heal()
        #expect(try store.rows().count == 1)
    }

    @Test("A store that cannot be completed is not published", arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8])
    func creation(code: Int32) throws {
        let directory = try TemporaryDirectory()
        let disk = FaultyDisk(under: directory.path)
        disk.fail(.database, .write, with: code)
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore.create(
                at: directory.storePath, storeID: .random(), keybag: [1], generation: 7,
                options: StoreOptions(vfsName: FaultyDisk.vfsName))
        }
        #expect(failure?.status == (code == SQLITE_FULL ? .notAvailable : .inputOutput))
        #expect(try directory.names == [])
    }
}
