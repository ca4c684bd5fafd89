// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import Testing

@Suite("A store of format 1")
struct FormatUpgradeTests {
    let directory: TemporaryDirectory
    let rows = (1...100).map { SampleRows.row(account: $0) }

    /// A store as older versions of this program made it.
    init() throws {
        directory = try TemporaryDirectory()
        do { try directory.makeStore().insert(rows) }
        try RawDatabase(directory.storePath, stamps: false).run("PRAGMA user_version = 1")
        var bytes = try #require(FileManager.default.contents(atPath: directory.storePath))
        for end in stride(from: 4_096, through: bytes.count, by: 4_096) { bytes.replaceSubrange(end - 16..<end, with: Data(count: 16)) }
        try bytes.write(to: URL(fileURLWithPath: directory.storePath))
    }

    private func formatVersion() throws -> Int64 {
        try RawDatabase(directory.storePath).integer("PRAGMA user_version")
    }

    @Test("Reading leaves it as it is")
    func reading() throws {
        let before = try directory.contents
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(try store.rows().count == rows.count)
            #expect(try store.integrityProblems() == [])
        }
        #expect(try directory.contents == before)
    }

    @Test("The first write makes it one of format 2, with all that is in it")
    func writing() throws {
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(try store.rows().count == rows.count)
            try store.insert([SampleRows.row(account: 200)])
            #expect(try formatVersion() == 2)
            try store.insert([SampleRows.row(account: 201)])
            #expect(try store.rows().count == rows.count + 2)
            #expect(try store.integrityProblems() == [])
        }
        #expect(try PageChecksumTests.wrongPages(directory.storePath) == [])
    }

    @Test("What is in its -wal file is kept", arguments: [1, 300])
    func withLog(count: Int) throws {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        let reader = try RawDatabase(directory.storePath)
        try reader.run("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM items")
        try other.insert((1_000..<1_000 + UInt64(count)).map { SampleRows.row(account: $0) })
        let copies = try DirectoryCopy(of: directory)
        try reader.run("COMMIT")
        do {
            let store = try SQLiteItemStore(openingAt: copies.directory.storePath)
            try store.insert([SampleRows.row(account: 200)])
            #expect(try store.rows().count == rows.count + count + 1)
        }
        #expect(try RawDatabase(copies.directory.storePath).integer("PRAGMA user_version") == 2)
        #expect(try PageChecksumTests.wrongPages(copies.directory.storePath) == [])
    }

    @Test("What is in its -wal file is made durable before it is brought into the database")
    func withLogThatCannotBeWritten() throws {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        let reader = try RawDatabase(directory.storePath)
        try reader.run("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM items")
        try other.insert([SampleRows.row(account: 1_000)])
        let left = try DirectoryCopy(of: directory).directory
        let before = try left.contents
        let disk = FaultyDisk(under: left.path)
        disk.fail(.wal, .write, with: SQLITE_IOERR | 3 << 8)
        do {
            let store = try SQLiteItemStore(openingAt: left.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
            #expect(throws: KeychainFailure.self) { try store.insert([SampleRows.row(account: 200)]) }
        }
        let after = try left.contents
        #expect(after["keychain.db"] == before["keychain.db"])
        #expect(after["keychain.db-wal"] == before["keychain.db-wal"])
        disk.heal()
        let store = try SQLiteItemStore(openingAt: left.storePath)
        try store.insert([SampleRows.row(account: 200)])
        #expect(try store.rows().count == rows.count + 2)
    }

    @Test("While somebody else has it open it stays of format 1, and takes writes")
    func notAlone() throws {
        let other = try RawDatabase(directory.storePath, stamps: false)
        #expect(try other.integer("SELECT count(*) FROM items") == Int64(rows.count))
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            try store.insert([SampleRows.row(account: 200)])
            #expect(try formatVersion() == 1)
            try other.run("PRAGMA user_version = 1")
            try store.insert([SampleRows.row(account: 201)])
            #expect(try store.rows().count == rows.count + 2)
        }
        try other.run("PRAGMA wal_checkpoint(TRUNCATE)")
        #expect(try formatVersion() == 1)
    }

    @Test("Nobody is waited for to make it one of format 2: the write that asked for it has its own deadline")
    func neverWaits() throws {
        let disk = FaultyDisk(under: directory.path)
        let store = try SQLiteItemStore(
            openingAt: directory.storePath, options: StoreOptions(busyTimeoutMilliseconds: 300, vfsName: FaultyDisk.vfsName))
        // The first one is the writer, who finds the old format.
        disk.refuseLock(opening: 2)
        try store.insert([SampleRows.row(account: 200)])
        #expect(disk.refusedLockCount == 1)
        #expect(try formatVersion() == 1)
    }

    @Test("Half of it has checksums after an interruption: the next write finishes that")
    func interrupted() throws {
        var bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: directory.storePath)))
        for page in 0..<bytes.count / 8_192 {
            let start = page * 4_096
            let checksum = PageChecksumTests.checksum(Array(bytes[start..<start + 4_096]), number: UInt64(page + 1))
            bytes.replaceSubrange(start + 4_080..<start + 4_096, with: checksum)
        }
        try Data(bytes).write(to: URL(fileURLWithPath: directory.storePath))
        do { try SQLiteItemStore(openingAt: directory.storePath).insert([SampleRows.row(account: 200)]) }
        #expect(try formatVersion() == 2)
        #expect(try PageChecksumTests.wrongPages(directory.storePath) == [])
    }

    @Test("Without room for checksums nothing is written into its pages")
    func withoutRoom() throws {
        var bytes = try #require(FileManager.default.contents(atPath: directory.storePath))
        bytes[20] = 0
        try bytes.write(to: URL(fileURLWithPath: directory.storePath))
        _ = failure { () throws(KeychainFailure) in
            try SQLiteItemStore(openingAt: directory.storePath).insert([SampleRows.row(account: 200)])
        }
        #expect(try RawDatabase(directory.storePath, stamps: false).integer("PRAGMA user_version") == 1)
    }
}
