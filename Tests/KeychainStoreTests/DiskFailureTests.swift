// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

/// A small file system in memory, mounted on a directory for one test.
final class TemporaryMount: Sendable {
    let directory: TemporaryDirectory

    /// Whether this process may mount: it must be root, outside most containers.
    static let isPossible: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        guard run("/bin/mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", directory.path) else { return false }
        return run("/bin/umount", directory.path)
    }()

    init(byteCount: Int) throws {
        directory = try TemporaryDirectory()
        guard Self.run("/bin/mount", "-t", "tmpfs", "-o", "size=\(byteCount),mode=0700", "none", directory.path) else {
            throw CocoaError(.fileWriteUnknown)
        }
    }

    deinit { _ = Self.run("/bin/umount", "--lazy", directory.path) }

    /// Repeats the remount if the file system is busy: a process that another test starts holds this one's files open until its exec.
    func makeReadOnly() throws {
        for _ in 0..<100 where Self.run("/bin/mount", "-o", "remount,ro", directory.path) { return }
        throw CocoaError(.fileWriteUnknown)
    }

    func makeWritable() throws {
        guard Self.run("/bin/mount", "-o", "remount,rw", directory.path) else { throw CocoaError(.fileWriteUnknown) }
    }

    private static func run(_ path: String, _ arguments: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

@Suite("Disk failures", .blocking)
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

    @Test("Planted fault: with synchronous = NORMAL there is no flush")
    func doesNotFlush() throws {
        let careless = try SQLiteItemStore(
            openingAt: directory.storePath, options: StoreOptions(synchronous: .normal, vfsName: FaultyDisk.vfsName))
        try careless.insert([SampleRows.row(account: 9)])
        let before = disk.syncCount(of: .wal)
        for account in 10..<30 { try careless.insert([SampleRows.row(account: UInt64(account))]) }
        #expect(disk.syncCount(of: .wal) == before)
    }

    @Test("A failed flush is reported as an unknown outcome")
    func unknownOutcome() throws {
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        let failure = insertFailure(2)
        #expect(failure?.status == .inputOutput)
        #expect(failure?.cause == .outcomeUnknown)
    }

    @Test("After an unknown outcome a write is acknowledged only after all earlier changes were flushed again")
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

    @Test("After an unknown outcome no write is acknowledged while another process reads an old state")
    func blockedAfterUnknownOutcome() throws {
        let other = try RawDatabase(directory.storePath)
        try other.execute("BEGIN")
        _ = try other.integer("SELECT count(*) FROM items")
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        _ = insertFailure(2)
        disk.heal()
        #expect(insertFailure(3)?.status == .notAvailable)
        try other.execute("COMMIT")
        try store.insert([SampleRows.row(account: 4)])
    }

    @Test("A full disk changes nothing, is reported, and writes succeed once there is space")
    func full() throws {
        disk.fail(.wal, .write, with: SQLITE_FULL)
        let failure = insertFailure(2)
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .diskFull)
        #expect(try store.rows().count == 1)
        disk.heal()
        try store.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
    }

    @Test("A write that fails is rolled back")
    func writeError() throws {
        disk.fail(.wal, .write, with: SQLITE_IOERR | 3 << 8)
        #expect(insertFailure(2)?.status == .inputOutput)
        disk.heal()
        try store.insert([SampleRows.row(account: 3)])
        #expect(try store.integrityProblems() == [])
    }

    @Test("A body that ignores a failure is not committed")
    func swallowedFailure() throws {
        let failure = failure { () throws(KeychainFailure) in
            _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
                try writing.insert(SampleRows.row(account: 2))
                disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
                disk.fail(.wal, .read, with: SQLITE_IOERR | 1 << 8)
                // Rows that were not read yet are on pages outside the cache.
                _ = try? writing.quarantinedRows()
                disk.heal()
            }
        }
        #expect(failure?.status == .inputOutput)
        #expect(failure?.cause != .outcomeUnknown, "nothing was committed, so the outcome is known")
        #expect(try store.rows().count == 1)
    }

    @Test("An unreadable page is an error, never 'not found'")
    func readError() throws {
        store.close()
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
        #expect(failure { () throws(KeychainFailure) in _ = try store.rows() }?.status == .inputOutput)
        disk.heal()
        #expect(try store.rows().count == 1)
    }

    @Test("An incomplete store is not published", arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8])
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

@Suite("Full and read-only file systems", .blocking, .enabled(if: TemporaryMount.isPossible, "mounting requires root"))
struct MountTests {
    @Test("A store on a full disk refuses writes, keeps its rows, and accepts writes once there is space")
    func full() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        let store = try mount.directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let ballast = mount.directory.path + "/ballast"
        try Data().write(to: URL(fileURLWithPath: ballast))
        let handle = try #require(FileHandle(forWritingAtPath: ballast))
        while (try? handle.write(contentsOf: Data(count: 4_096))) != nil {}
        try handle.close()

        // The free part of the -wal file's last page may still hold a row or two.
        var failed: KeychainFailure?
        var storedCount = 1
        for account in 2..<100 {
            failed = failure { () throws(KeychainFailure) in
                try store.insert([SampleRows.row(account: UInt64(account), secretByteCount: 8_000)])
            }
            if failed != nil { break }
            storedCount += 1
        }
        #expect(failed?.status == .notAvailable)
        #expect(failed?.cause == .diskFull)
        #expect(try store.rows().count == storedCount)
        try FileManager.default.removeItem(atPath: ballast)
        // The kernel may free the content of a removed file a little later.
        let hasSpace = try waitUntil {
            let facts = try FileManager.default.attributesOfFileSystem(forPath: mount.directory.path)
            return (facts[.systemFreeSize] as? Int ?? 0) > 1 << 19
        }
        try #require(hasSpace)
        try store.insert([SampleRows.row(account: 1_000, secretByteCount: 8_000)])
        #expect(try store.rows().count == storedCount + 1)
        #expect(try store.integrityProblems() == [])
    }

    @Test("On a full disk creation fails and leaves no file")
    func creationOnFullDisk() throws {
        let mount = try TemporaryMount(byteCount: 16 << 10)
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore.create(at: mount.directory.storePath, storeID: .random(), keybag: [1], generation: 1)
        }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .diskFull)
        #expect(try mount.directory.names == [])
    }

    @Test("A store on a read-only file system can be read but not written")
    func readOnly() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        do { try mount.directory.makeStore().insert([SampleRows.row(account: 1)]) }
        try mount.makeReadOnly()
        #expect(try SQLiteItemStore.inspect(mount.directory.storePath) == .present)
        let store = try SQLiteItemStore(openingAt: mount.directory.storePath)
        #expect(try store.rows().count == 1)
        #expect(try store.keybag().generation == 7)
        let write = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(write?.status == .readOnly)
        #expect(write?.path == mount.directory.path)
        #expect(try store.rows().count == 1)
    }

    @Test("A store notices that its read-only file system has become writable")
    func becomesWritable() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        do { try mount.directory.makeStore().insert([SampleRows.row(account: 1)]) }
        try mount.makeReadOnly()
        let store = try SQLiteItemStore(openingAt: mount.directory.storePath)
        #expect(try store.rows().count == 1)
        try mount.makeWritable()
        let other = try SQLiteItemStore(openingAt: mount.directory.storePath)
        try other.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
        try store.insert([SampleRows.row(account: 3)])
        #expect(try other.rows().count == 3)
    }

    @Test("Without permission to write, a -wal file that has only its header is read like one without frames")
    func headerOnly() throws {
        // A flush of the header failed, and the kernel made the file system read-only, as ext4 does with errors=remount-ro.
        let mount = try TemporaryMount(byteCount: 1 << 20)
        let logPath = mount.directory.storePath + "-wal"
        var header = Data()
        do {
            let store = try mount.directory.makeStore()
            try store.insert([SampleRows.row(account: 1)])
            header = try #require(FileManager.default.contents(atPath: logPath)?.prefix(32))
        }
        try header.write(to: URL(filePath: logPath))
        try Data(count: 32_768).write(to: URL(filePath: mount.directory.storePath + "-shm"))
        try mount.makeReadOnly()
        let store = try SQLiteItemStore(openingAt: mount.directory.storePath)
        #expect(try store.rows().count == 1)
        #expect(try store.integrityProblems() == [])
        let write = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(write?.status == .readOnly)
    }

    @Test("On a read-only file system creation fails")
    func creationReadOnly() throws {
        let mount = try TemporaryMount(byteCount: 64 << 10)
        try mount.makeReadOnly()
        for path in [mount.directory.storePath, mount.directory.path + "/deeper/keychain.db"] {
            let failure = failure { () throws(KeychainFailure) in
                _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1)
            }
            #expect(failure?.status == .readOnly)
            #expect(failure?.path?.hasPrefix(mount.directory.path) == true)
        }
    }
}
