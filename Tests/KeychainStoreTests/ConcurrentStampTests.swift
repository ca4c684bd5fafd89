// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Synchronization
import Testing

/// Two stores at one path, as two processes have them.
@Suite("While several processes write, an opening does not compare the rows", .blocking)
struct ConcurrentStampTests {
    private let directory: TemporaryDirectory
    private let disk: FaultyDisk
    private let store: SQLiteItemStore
    private let other: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        disk = FaultyDisk(under: directory.path)
        let cipher = PlainStateCipher()
        let keybag = ItemStoreContract.keybag
        try SQLiteItemStore.create(
            at: directory.storePath, storeID: .random(), keybag: keybag.copies[0], generation: keybag.generation,
            state: cipher.seal(.initial(keybagDigest: cipher.digest(ofKeybag: keybag.copies[0])))
        ).mustBeCreated()
        store = try Self.open(in: directory, cipher)
        other = try Self.open(in: directory, cipher)
        try store.insert([Self.row(1)])
        try other.insert([Self.row(2)])
    }

    private static func open(in directory: TemporaryDirectory, _ cipher: any StateCipher) throws -> SQLiteItemStore {
        let options = StoreOptions(busyTimeoutMilliseconds: 60_000, vfsName: FaultyDisk.vfsName)
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: options)
        try store.protect(with: cipher, using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        return store
    }

    private static func row(_ account: UInt64) -> SealedRow {
        var row = SampleRows.row(account: account)
        row.tag = (0..<32).map { UInt8(truncatingIfNeeded: account >> (8 * ($0 % 8))) }
        return row
    }

    /// Opens the store again, and returns the number of rows that this compares.
    private static func comparedRowCount(in directory: TemporaryDirectory) throws -> Int {
        let cipher = CountingCipher()
        try open(in: directory, cipher).close()
        return cipher.elementCount
    }

    /// Inserts so many rows that a checkpoint follows.
    private func insertMany() throws {
        try store.insert((1_000...4_000).map(Self.row))
    }

    /// Runs `body` within a checkpoint that has written so many pages.
    private static func after(_ writeCount: Int, on disk: FaultyDisk, _ body: @escaping @Sendable () -> Void) {
        disk.before(.database, .write) {
            guard writeCount > 0 else { return body() }
            after(writeCount - 1, on: disk, body)
        }
    }

    @Test("A commit is recorded whatever a checkpoint of another process has copied at its beginning", arguments: [0, 1, 3])
    func checkpoint(writeCount: Int) throws {
        let isWritten = Found(false)
        Self.after(writeCount, on: disk) { [other] in
            isWritten.value = (try? other.insert([Self.row(3)])) != nil
        }
        try insertMany()
        #expect(isWritten.value)
        #expect(try Self.comparedRowCount(in: directory) == 0)
        try store.insert([Self.row(4)])
        try other.insert([Self.row(5)])
        #expect(try Self.comparedRowCount(in: directory) == 0)
        #expect(try store.stateProblem(readingAllRows: true) == nil)
    }

    @Test(
        "An opening waits for a process that has written and not recorded it yet",
        arguments: [(FaultyDisk.File.wal, FaultyDisk.Operation.sync), (.database, .sync)])
    func opening(file: FaultyDisk.File, operation: FaultyDisk.Operation) throws {
        // The opening can still look between the release of the lock and the record. That it does so each time is as good as impossible.
        var counts: [Int?] = []
        while counts.count < 20, counts.last != 0 {
            let result = Found<Int?>(nil)
            let refusedCount = disk.refusedWriteLockCount
            disk.before(file, operation) { [disk, directory] in
                Thread.detachNewThread { result.value = (try? Self.comparedRowCount(in: directory)) ?? -1 }
                waitUntil { disk.refusedWriteLockCount > refusedCount || result.value != nil }
            }
            try store.insert((0...3_000).map { Self.row(UInt64(counts.count * 10_000 + 10_000 + $0)) })
            waitUntil { result.value != nil }
            counts.append(result.value)
        }
        #expect(counts.last == 0)
    }

    @Test("An opening does not wait for a process that holds the write lock for long", .timeLimit(.minutes(10)))
    func longWrite() throws {
        Self.run(#"touch "$1""#, directory.storePath)
        var count = 0
        _ = try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation) { [directory] _ in
            count = (try? Self.comparedRowCount(in: directory)) ?? -1
        }
        #expect(count > 0)
    }

    @Test("A -wal file that another program has changed is not trusted after a checkpoint")
    func changedLog() throws {
        let log = directory.storePath + "-wal"
        disk.before(.database, .write) { Self.run(Self.rewriting, log) }
        try insertMany()
        try other.insert([Self.row(3)])
        #expect(try Self.comparedRowCount(in: directory) > 0)
    }

    @Test("A database that another program has changed is not trusted after a checkpoint")
    func changedDatabase() throws {
        disk.before(.wal, .sync) { [directory] in Self.run(Self.rewriting, directory.storePath) }
        try insertMany()
        try other.insert([Self.row(3)])
        #expect(try Self.comparedRowCount(in: directory) > 0)
    }

    @Test("A -wal file that another program has changed is not trusted once its content is in the database and it is removed")
    func copiedLog() throws {
        store.close()
        other.close()
        let store = try Self.open(in: directory, PlainStateCipher())
        try store.read { reading throws(KeychainFailure) in _ = try reading.lockEpoch() }
        Self.run(Self.appending, directory.storePath + "-wal")
        // The state stays the same. The last of these commits is followed by a checkpoint, which leaves nothing to copy.
        let isCopied = Found(false)
        disk.before(.database, .write) { isCopied.value = true }
        while !isCopied.value { try store.advanceLockEpoch(.everything) }
        store.close()
        #expect(try Self.comparedRowCount(in: directory) > 0)
        #expect(try Self.comparedRowCount(in: directory) == 0)
    }

    private static let rewriting = #"sleep 0.05; dd if="$1" of="$1" bs=1 count=1 conv=notrunc status=none"#
    private static let appending = #"printf x >>"$1""#

    /// Runs a command of the shell with a file, in another process: closing the file here would drop the locks on it.
    private static func run(_ command: String, _ path: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command, "sh", path]
        try? process.run()
        process.waitUntilExit()
    }
}

/// A value that another thread finds.
private final class Found<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
