// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

/// The index of the -wal file is in the -shm file, and nothing authenticates it.
@Suite("An altered -shm file", .blocking, .timeLimit(.minutes(10)))
struct AlteredIndexTests {
    private static let headerByteCount = 32
    private static let frameByteCount = 24 + 4_096
    /// The offset of the page numbers of the frames in the index.
    private static let pageNumbers = 136
    private static let firstSalt = 32
    private static let backfilledCount = 96
    /// A page that no database has.
    private static let impossiblePage: UInt32 = 0x7FFF_FFFE

    private let directory: TemporaryDirectory
    private var logPath: String { directory.storePath + "-wal" }

    init() throws { directory = try TemporaryDirectory() }

    /// Page numbers of the frames in the -wal file.
    private func framePages() throws -> [UInt32] {
        let log = try [UInt8](Data(contentsOf: URL(filePath: logPath)))
        guard log.count >= Self.headerByteCount else { return [] }
        let salts = log[16..<24]
        return stride(from: Self.headerByteCount, to: log.count - Self.frameByteCount + 1, by: Self.frameByteCount)
            .prefix { log[$0 + 8..<$0 + 16] == salts }.map { start in log[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) } }
    }

    /// Writes a number into the index, in another process: closing the file here would drop this process's locks on it.
    private func writeIndex(_ number: UInt32, at offset: Int) throws {
        let octal = (0..<4).map { "\\0" + String(number >> (8 * $0) & 0xFF, radix: 8) }.joined()
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [
            "-c", #"printf '%b' "$1" | dd of="$2" bs=1 seek="$3" conv=notrunc status=none"#, "sh", octal, directory.storePath + "-shm",
            String(offset),
        ]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    /// Hides frames, counted from 0, except those of the page that every change writes.
    private func hide(_ frames: Range<Int>, except page: UInt32? = nil) throws {
        let pages = try framePages()
        for frame in frames where pages[frame] != page {
            try writeIndex(Self.impossiblePage, at: Self.pageNumbers + 4 * frame)
        }
    }

    private func expectWrongIndex(_ body: () throws(KeychainFailure) -> Void, _ location: SourceLocation = #_sourceLocation) {
        let failure = failure(of: body)
        #expect(failure?.isDamage == true && failure?.remedy == .closeElsewhere, "\(String(describing: failure))", sourceLocation: location)
    }

    /// After all connections are closed, the next one makes another index from the -wal file.
    private func expectAllRows(_ count: Int, _ location: SourceLocation = #_sourceLocation) throws {
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try store.rows().count == count, sourceLocation: location)
        #expect(try store.integrityProblems() == [], sourceLocation: location)
        try store.insert([SampleRows.row(account: 1_000)])
        #expect(try store.rows().count == count + 1, sourceLocation: location)
    }

    @Test("Frames that the index hides are missed by no reader, and closing the store loses none of them", arguments: [true, false])
    func hidden(opensReader: Bool) throws {
        do {
            let store = try directory.makeStore()
            try store.insert([SampleRows.row(account: 1)])
            let count = try framePages().count
            try store.insert([SampleRows.row(account: 2)])
            try hide(count..<framePages().count)
            if opensReader {
                expectWrongIndex { () throws(KeychainFailure) in
                    let reader = try SQLiteItemStore(openingAt: directory.storePath)
                    _ = try reader.rows()
                }
            }
        }
        #expect(try framePages().count > 0, "the -wal file was not removed")
        try expectAllRows(2)
    }

    @Test("A reader of an older page, although the index has its newer one, fails")
    func olderFrame() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let count = try framePages().count
        try store.insert([SampleRows.row(account: 2)])
        for frame in count..<(try framePages().count) {
            try hide(frame..<frame + 1)
            expectWrongIndex { () throws(KeychainFailure) in
                let reader = try SQLiteItemStore(openingAt: directory.storePath)
                _ = try reader.rows()
                _ = try reader.rows(RowQuery(id: SampleRows.row(account: 2).header.reference.id))
                let problems = try reader.integrityProblems()
                if !problems.isEmpty { throw KeychainFailure(.notAvailable, "\(problems)", isDamage: true, remedy: .closeElsewhere) }
            }
            try writeIndex(framePages()[frame], at: Self.pageNumbers + 4 * frame)
        }
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().count == 2)
    }

    @Test("Frames that are wrongly marked as copied are neither skipped by readers nor overwritten")
    func notCopied() throws {
        do {
            let store = try directory.makeStore()
            for account in 1...UInt64(5) { try store.insert([SampleRows.row(account: account)]) }
            try writeIndex(UInt32(framePages().count), at: Self.backfilledCount)
            expectWrongIndex { () throws(KeychainFailure) in
                let reader = try SQLiteItemStore(openingAt: directory.storePath)
                _ = try reader.rows()
            }
            let writer = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 6)]) }
            #expect(writer?.isDamage == true)
        }
        try expectAllRows(5)
    }

    @Test("A checkpoint that skipped hidden frames does not restart the -wal file")
    func skippedByCheckpoint() throws {
        do {
            let store = try directory.makeStore()
            try store.insert([SampleRows.row(account: 1)])
            let count = try framePages().count
            try store.insert([SampleRows.row(account: 2)])
            try hide(count..<framePages().count)
            let other = try RawDatabase(directory.storePath)
            #expect(throws: RawDatabase.Failure.self) { try other.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
            // Fails once the next change would overwrite the frames.
            _ = failure { () throws(KeychainFailure) in
                for account in 3...UInt64(400) { try store.insert([SampleRows.row(account: account)]) }
            }
        }
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        let ids = try store.rows().map(\.header.accountDigest)
        for account in 1...UInt64(2) { #expect(ids.contains(SampleRows.row(account: account).header.accountDigest)) }
        #expect(try store.integrityProblems() == [])
    }

    @Test("A reader that needs no frame is not disturbed when the -wal file is restarted")
    func restartedBesideReader() throws {
        // The reader's lock does not keep the frames from being overwritten, because all are copied. It must not compare its pages with them.
        let (reader, writer) = (try directory.makeStore(), try SQLiteItemStore(openingAt: directory.storePath))
        let ids = try (1...UInt64(40)).map { account in
            let row = SampleRows.row(account: account, secretByteCount: 6_000)
            try writer.insert([row])
            return row.header.reference.id
        }
        try RawDatabase(directory.storePath).execute("PRAGMA wal_checkpoint(PASSIVE)")
        let count = try reader.read { session throws(KeychainFailure) in
            _ = try session.rows(RowQuery(id: ids[0]))
            for account in 100...UInt64(105) { try writer.insert([SampleRows.row(account: account)]) }
            var count = 0
            for id in ids { count += try session.rows(RowQuery(id: id)).count }
            return count
        }
        #expect(count == 40)
        #expect(try framePages().count < 40, "the -wal file was not restarted")
        #expect(try reader.rows().count == 46)
    }

    @Test("A checkpoint copies nothing if the -wal file is restarted between its look at the index and its lock on the readers")
    func restartedBeforeCopying() throws {
        // In SQLite from 3.7.0 to 3.51.2 such a checkpoint counts the new frames as copied. Here the index gets other salts at that moment.
        let store = try directory.makeStore()
        for account in 1...UInt64(5) { try store.insert([SampleRows.row(account: account)]) }
        let disk = FaultyDisk(under: directory.path)
        let other = try RawDatabase(directory.storePath, over: FaultyDisk.vfsName)
        let salt = try [UInt8](Data(contentsOf: URL(filePath: logPath)))[16..<20].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        disk.beforeCopying { [self] in
            #expect(throws: Never.self) { try writeIndex(salt &+ 1, at: Self.firstSalt) }
        }
        #expect(try other.integer("PRAGMA wal_checkpoint(PASSIVE)") == 0)
        try writeIndex(salt, at: Self.firstSalt)
        #expect(try store.rows().count == 5)
        #expect(try other.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
        #expect(try framePages().isEmpty)
        #expect(try store.rows().count == 5)
    }

    @Test("A checkpoint that waits for a writer goes on if the writer restarts the -wal file meanwhile")
    func restartedBeforeItsTurn() async throws {
        let store = try directory.makeStore()
        for account in 1...UInt64(5) { try store.insert([SampleRows.row(account: account)]) }
        let disk = FaultyDisk(under: directory.path)
        let other = try RawDatabase(directory.storePath)
        // Everything is copied, so the next change restarts the file.
        #expect(try other.integer("PRAGMA wal_checkpoint(PASSIVE)") == 0)
        try other.execute("BEGIN IMMEDIATE")
        let checkpoint = Task.detached { [path = directory.storePath] in
            try RawDatabase(path, over: FaultyDisk.vfsName).integer("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        #expect(waitUntil { disk.refusedWriteLockCount > 0 })
        try other.execute("UPDATE meta SET lock_epoch = lock_epoch + 1; COMMIT")
        // Nonzero: it was refused until its deadline, because it has the write lock itself.
        #expect(try await checkpoint.value == 0)
        #expect(try framePages().isEmpty)
        #expect(try store.rows().count == 5)
    }

    @Test("Without an alteration, many writers and readers restart the -wal file as before")
    func unaltered() throws {
        let stores = try [directory.makeStore(), SQLiteItemStore(openingAt: directory.storePath)]
        let raw = try RawDatabase(directory.storePath)
        for round in 0..<600 {
            try stores[round % 2].insert([SampleRows.row(account: UInt64(round + 1), secretByteCount: round % 50 == 0 ? 60_000 : 40)])
            if round % 7 == 0 { #expect(try stores[(round + 1) % 2].rows(RowQuery()).count == round + 1) }
            if round % 150 == 149 { try raw.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
        }
        #expect(try framePages().count < 2_000)
        #expect(try stores[0].rows().count == 600)
        #expect(try stores[1].integrityProblems() == [])
    }
}
