// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

/// A checkpoint overwrites pages of the database.
///
/// If the power fails meanwhile, only the -wal file can restore them, so its content must be
/// durable before the checkpoint.
@Suite("The -wal file when the last connection is closed", .blocking)
struct LogAtClosingTests {
    private let directory: TemporaryDirectory
    private let logName = "keychain.db-wal"

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A store whose process was killed after a write.
    private func afterKill() throws -> TemporaryDirectory {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        return try DirectoryCopy(of: directory).directory
    }

    @Test("A connection that only reads leaves the -wal file")
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

    @Test("A connection that writes makes the -wal file durable, then checkpoints it")
    func writer() throws {
        let left = try afterKill()
        do {
            let store = try SQLiteItemStore(openingAt: left.storePath)
            try store.insert([SampleRows.row(account: 2)])
        }
        #expect(try left.names == ["keychain.db"])
        #expect(try SQLiteItemStore(openingAt: left.storePath).rows().count == 2)
    }

    @Test("A connection that only reads removes an empty -wal file")
    func emptyLog() throws {
        try directory.create()
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(try store.rows().isEmpty)
            #expect(try directory.names.contains(logName))
        }
        #expect(try directory.names == ["keychain.db"])
    }

    @Test("A connection whose flush failed leaves the -wal file")
    func failedFlush() throws {
        let disk = FaultyDisk(under: directory.path)
        let database: Data
        do {
            let store = try directory.makeStore(options: StoreOptions(vfsName: FaultyDisk.vfsName))
            try store.insert([SampleRows.row(account: 1)])
            database = try #require(try DirectoryCopy(of: directory).directory.contents["keychain.db"])
            disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
            #expect(throws: (any Error).self) { try store.insert([SampleRows.row(account: 2)]) }
            disk.heal()
        }
        let after = try directory.contents
        #expect(after["keychain.db"] == database)
        #expect(after[logName]?.isEmpty == false)
    }
}

/// A -wal file that a killed process left behind.
///
/// SQLite would treat the first damaged frame as the end of the file.
@Suite("A damaged -wal file", .blocking, .timeLimit(.minutes(10)))
struct LogDamageTests {
    private static let headerByteCount = 32
    private static let frameByteCount = 24 + 4_096
    private static let rowCount = 8

    /// The number of acknowledged transactions, one row each, before the process was killed.
    private let killed: DirectoryCopy
    private let log: [UInt8]

    private var logPath: String { killed.directory.storePath + "-wal" }
    /// The numbers, counted from 0, of the frames that end a transaction.
    private var commits: [Int] { (0..<frameCount).filter { log[start(of: $0) + 4..<start(of: $0) + 8].contains { $0 != 0 } } }
    private var frameCount: Int { (log.count - Self.headerByteCount) / Self.frameByteCount }

    private func start(of frame: Int) -> Int { Self.headerByteCount + frame * Self.frameByteCount }

    init() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        for account in 1...Self.rowCount { try store.insert([SampleRows.row(account: UInt64(account))]) }
        killed = try DirectoryCopy(of: directory)
        log = try [UInt8](Data(contentsOf: URL(filePath: killed.directory.storePath + "-wal")))
        withExtendedLifetime(store) {}
    }

    /// Opens a copy of the files with that -wal file.
    ///
    /// Returns the number of rows or the failure.
    private func outcome(_ log: [UInt8]) throws -> Result<Int, KeychainFailure> {
        let path = killed.directory.storePath
        let database = try Data(contentsOf: URL(filePath: path))
        defer {
            try? database.write(to: URL(filePath: path))
            try? FileManager.default.removeItem(atPath: path + "-shm")
        }
        try? FileManager.default.removeItem(atPath: path + "-shm")
        try Data(log).write(to: URL(filePath: logPath))
        let result = Result { () throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: path)
            return try store.rows().count
        }
        if case .failure = result {
            #expect(try [UInt8](Data(contentsOf: URL(filePath: logPath))) == log, "the file is unchanged")
        }
        return result
    }

    private func isReportedAsDamage(_ result: Result<Int, KeychainFailure>) -> Bool {
        if case .failure(let failure) = result { failure.status == .notAvailable && failure.isDamage } else { false }
    }

    @Test("Without damage all transactions are read")
    func sound() throws {
        #expect(commits.count == Self.rowCount)
        #expect(try outcome(log).get() == Self.rowCount)
    }

    @Test("A changed byte in any frame before the last transaction is reported as damage")
    func everyFrame() throws {
        let lastTransaction = try #require(commits.dropLast().last) + 1
        for frame in 0..<lastTransaction {
            // Each field of the header, and the start, middle, and end of the page.
            for inset in [0, 3, 7, 9, 13, 16, 19, 20, 23, 24, 2_000, 4_119] {
                var bytes = log
                bytes[start(of: frame) + inset] ^= 0x40
                #expect(isReportedAsDamage(try outcome(bytes)), "frame \(frame), byte \(inset)")
            }
        }
    }

    @Test("A changed bit of the field that marks the end of a transaction is damage, except in the last frame")
    func endsOfTransactions() throws {
        for commit in commits.dropLast() {
            for bit in 0..<32 {
                var bytes = log
                bytes[start(of: commit) + 4 + bit / 8] ^= 1 << (bit % 8)
                #expect(isReportedAsDamage(try outcome(bytes)), "frame \(commit), bit \(bit)")
            }
            var bytes = log
            bytes.replaceSubrange(start(of: commit) + 4..<start(of: commit) + 8, with: [0, 0, 0, 0])
            #expect(isReportedAsDamage(try outcome(bytes)), "frame \(commit), no number")
        }
    }

    @Test("A change of any byte of the file's header is damage", arguments: 0..<headerByteCount)
    func header(byte: Int) throws {
        var bytes = log
        bytes[byte] ^= 0x01
        #expect(isReportedAsDamage(try outcome(bytes)))
    }

    @Test("A zeroed sector is damage if it ends before the last three transactions")
    func zeros() throws {
        let end = start(of: try #require(commits.dropLast(3).last) + 1)
        for sector in 0..<end / 512 {
            var bytes = log
            bytes.replaceSubrange(sector * 512..<(sector + 1) * 512, with: repeatElement(0, count: 512))
            guard bytes != log else { continue }
            #expect(isReportedAsDamage(try outcome(bytes)), "sector \(sector)")
        }
    }

    @Test("A last transaction torn by a power failure is ignored, and all earlier ones are read")
    func torn() throws {
        let begin = start(of: try #require(commits.dropLast().last) + 1)
        for sector in begin / 512...(log.count - 1) / 512 {
            var bytes = log
            let range = max(begin, sector * 512)..<min(bytes.count, (sector + 1) * 512)
            bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
            let expected = bytes == log ? Self.rowCount : Self.rowCount - 1
            #expect(try outcome(bytes).get() == expected, "sector \(sector)")
        }
        for end in stride(from: begin, to: log.count, by: 500) {
            #expect(try outcome(Array(log[..<end])).get() == Self.rowCount - 1, "cut off at \(end)")
        }
    }

    @Test("An unfinished transaction, partly overwritten by a shorter one, is not damage")
    func abandoned() throws {
        // Two writers ended after their last frame and before the commit, the first with more frames than the second.
        let ends = commits
        let behind = start(of: ends[2] + 1)
        var bytes = Array(log[..<behind])
        for abandoned in [5, 4] {
            let transaction = Array(log[start(of: ends[abandoned - 1] + 1)..<start(of: ends[abandoned] + 1)])
            bytes += transaction
        }
        #expect(try outcome(bytes).get() == 3)
    }

    @Test("Frames from before a restart of the file, after the last frame, are not damage")
    func earlierRound() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        for account in 1...UInt64(20) { try store.insert([SampleRows.row(account: account, secretByteCount: 20_000)]) }
        let whole = try RawDatabase(directory.storePath)
        // The database has all changes, so the next write restarts the file.
        try whole.execute("PRAGMA wal_checkpoint(PASSIVE)")
        try store.insert([SampleRows.row(account: 21)])
        let copies = try DirectoryCopy(of: directory)
        let rounds = try [UInt8](Data(contentsOf: URL(filePath: copies.directory.storePath + "-wal")))
        let salts = Set(
            stride(from: Self.headerByteCount, to: rounds.count - Self.frameByteCount + 1, by: Self.frameByteCount).map {
                Array(rounds[$0 + 8..<$0 + 16])
            })
        try #require(salts.count == 2, "there is nothing of an earlier round")
        let copy = try SQLiteItemStore(openingAt: copies.directory.storePath)
        #expect(try copy.rows().count == 21)
        #expect(try copy.integrityProblems() == [])
        withExtendedLifetime((store, whole)) {}
    }

    @Test("A hole of any size after the last frame is neither read to its end nor filled by the next write", arguments: [true, false])
    func hole(hasFrames: Bool) throws {
        let directory = killed.directory
        if !hasFrames {
            try Data().write(to: URL(filePath: logPath))
            try? FileManager.default.removeItem(atPath: directory.storePath + "-shm")
        }
        try FileSystem.truncate(logPath, toByteCount: 200 << 30)
        let expected = hasFrames ? Self.rowCount : 0
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(try store.rows().count == expected)
            try store.insert([SampleRows.row(account: 100)])
            #expect(try store.rows().count == expected + 1)
        }
        #expect(try allocatedByteCount(directory) < 64 << 20)
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().count == expected + 1)
    }

    private func allocatedByteCount(_ directory: TemporaryDirectory) throws -> Int {
        try directory.names.reduce(0) { sum, name in
            sum + (try URL(filePath: directory.path + "/" + name).resourceValues(forKeys: [.fileAllocatedSizeKey]).fileAllocatedSize ?? 0)
        }
    }

    @Test("The number of changes after the damage is reported")
    func counted() throws {
        for transaction in 0..<Self.rowCount - 1 {
            var bytes = log
            bytes[start(of: commits[transaction]) + 100] ^= 0x10
            #expect(isReportedAsDamage(try outcome(bytes)))
            try Data(bytes).write(to: URL(filePath: logPath))
            let damage = try SQLiteItemStore.damage(at: killed.directory.storePath)
            #expect(damage.wal?.unreachableChangeCount == Self.rowCount - transaction)
            #expect(damage.description != nil)
        }
    }

    @Test("A page damaged while the store is open is neither read nor copied into the database")
    func whileOpen() throws {
        let directory = try TemporaryDirectory()
        let logPath = directory.storePath + "-wal"
        do {
            let store = try directory.makeStore()
            try store.insert([SampleRows.row(account: 1, secretByteCount: 20_000)])
            for account in 2...UInt64(Self.rowCount) { try store.insert([SampleRows.row(account: account)]) }
            try changeSupersededByNothing(logPath)
            let other = try SQLiteItemStore(openingAt: directory.storePath)
            #expect(failure { () throws(KeychainFailure) in _ = try other.rows() }?.isDamage == true)
            #expect(try other.integrityProblems().contains { if case .damagedLog = $0 { true } else { false } })
            // All other pages can be read and written.
            try other.insert([SampleRows.row(account: 100)])
        }
        // The last connection could not copy the page, so it left the file.
        #expect(try PageChecksumTests.wrongPages(directory.storePath) == [])
        #expect(try Data(contentsOf: URL(filePath: logPath)).count > 5 * Self.frameByteCount)
        #expect(failure { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: directory.storePath) }?.isDamage == true)
    }

    @Test("A transaction larger than SQLite's cache reads its own pages back before it commits, and is complete after a kill")
    func larger() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        let rowCount = 1_500 - 500 + 1_000 - 667
        _ = try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation) { writing throws(KeychainFailure) in
            // Pages written early are written again. The frames after them then have no valid checksums until the commit.
            for account in 1...UInt64(1_500) { try writing.insert(SampleRows.row(account: account, secretByteCount: 3_000)) }
            for number in stride(from: 1, through: Int64(1_500), by: 3) { try writing.remove(number: number) }
            for account in 2_001...UInt64(3_000) { try writing.insert(SampleRows.row(account: account, secretByteCount: 3_000)) }
            for number in stride(from: 2, through: Int64(2_000), by: 3) { try writing.remove(number: number) }
        }
        #expect(try store.rows().count == rowCount)
        #expect(try store.integrityProblems() == [])
        let copies = try DirectoryCopy(of: directory)
        let copy = try SQLiteItemStore(openingAt: copies.directory.storePath)
        #expect(try copy.rows().count == rowCount)
        #expect(try copy.integrityProblems() == [])
        withExtendedLifetime(store) {}
    }

    /// Flips one bit of a page that occurs once in the file.
    private func changeSupersededByNothing(_ path: String) throws {
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let starts = stride(from: Self.headerByteCount, to: bytes.count - Self.frameByteCount + 1, by: Self.frameByteCount)
        let pages = starts.map { Array(bytes[$0..<$0 + 4]) }
        let start = try #require(zip(starts, pages).first { item in pages.count { $0 == item.1 } == 1 }?.0)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.seek(toOffset: UInt64(start + 2_000))
        try handle.write(contentsOf: Data([bytes[start + 2_000] ^ 0x04]))
        try handle.close()
    }
}
