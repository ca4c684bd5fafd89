// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import CSQLiteShims
internal import KeychainCore
internal import KeychainSystem

extension SQLiteConnection {
    /// Makes the -wal file's content and the names of both files in `directory` durable, and allows the connection to checkpoint on close.
    ///
    /// The process that published the store may have ended before it flushed the name. SQLite creates the -wal file and ignores a failure to
    /// flush its name. Requires a write transaction, which ensures that the -wal file exists. The file remains while the connection is open.
    func makeWALDurable(in directory: String) throws(KeychainFailure) {
        try rewriteWAL()
        do throws(Errno) {
            try FileSystem.flush(directory)
        } catch {
            throw FileSystem.creationFailure(error, in: directory)
        }
        try setCheckpointsOnClose(true)
    }

    /// Rewrites the committed content of the -wal file with itself and flushes it.
    ///
    /// After a failed flush the kernel may mark pages clean that never reached the disk: they are read back from the cache, and no later
    /// flush writes them. A process that has ended since cannot have reported the failure. Rewriting marks the pages dirty again.
    ///
    /// Requires a write transaction, during which no process appends to or restarts the file. Readers see the same bytes throughout. Uses
    /// SQLite's own descriptor.
    private func rewriteWAL() throws(KeychainFailure) {
        guard let (file, methods) = unsafe walFile() else { return }
        try forEachCommittedChunk { offset, chunk throws(KeychainFailure) in
            let bytes = Array(chunk)
            try expectSuccess(unsafe methods.xWrite(file, bytes, Int32(bytes.count), offset), Self.flushing)
        }
        var byteCount: Int64 = 0
        try expectSuccess(unsafe methods.xFileSize(file, &byteCount), Self.flushing)
        if byteCount > 0 { try expectSuccess(unsafe methods.xSync(file, SQLITE_SYNC_NORMAL), Self.flushing) }
    }

    private static let flushing: StaticString = "making the -wal file durable"

    /// Passes the committed content of the -wal file to `body`.
    ///
    /// Requires a write transaction.
    private func forEachCommittedChunk(
        _ body: (_ offset: Int64, _ chunk: ArraySlice<UInt8>) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        guard let (file, methods) = unsafe walFile() else { return }
        let action: StaticString = "reading the -wal file"
        var byteCount: Int64 = 0
        try expectSuccess(unsafe keychain_wal_committed_byte_count(handle, &byteCount), action)
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        for offset in stride(from: 0, to: byteCount, by: buffer.count) {
            let count = Int(min(Int64(buffer.count), byteCount - offset))
            // The buffer has at least `count` bytes.
            try expectSuccess(unsafe methods.xRead(file, &buffer, Int32(count), offset), action)
            try body(offset, buffer[..<count])
        }
    }

    /// Throws if changes that seem to be missing are in the -wal file, where the -shm file hides them.
    ///
    /// Accepting the content would overwrite them. After all programs have closed the store, the next one finds them. Requires a transaction.
    func requireNoHiddenChanges() throws(KeychainFailure) {
        var hidesCommits = false
        let code = unsafe keychain_wal_hides_commits(handle, &hidesCommits)
        guard code == SQLITE_OK, hidesCommits else { return }
        throw health.record(.wrongIndex("comparing the changes"))
    }

    /// Waits a moment, and then until no other connection writes or runs a checkpoint, or until the time is over.
    ///
    /// No transaction may be open.
    func waitForWriters(timeoutMilliseconds: UInt64) {
        busyHandler.setDeadline(atNanoseconds: MonotonicClock.nowNanoseconds() + timeoutMilliseconds * 1_000_000)
        defer { busyHandler.resetDeadline() }
        var attempt = 2
        repeat {
            guard busyHandler.wait(attempt: attempt) else { return }
            attempt += 1
        } while unsafe keychain_is_written(handle) == SQLITE_BUSY
    }

    /// Sets whether the connection, if it is the last one to close, checkpoints the -wal file and removes it.
    ///
    /// Only a connection that knows the -wal file's content to be durable may do that: if the power fails during the checkpoint, only the
    /// -wal file can restore the database pages being written. A connection that only reads, or whose flush failed, does not know.
    func setCheckpointsOnClose(_ isOn: Bool) throws(KeychainFailure) {
        try setFlag(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !isOn)
    }

    /// Allows the connection to remove an empty -wal file on close, which a reader may have created, and prevents a broken connection from
    /// checkpointing.
    ///
    /// There is a race between this check and the close. It matters only if another process writes meanwhile, its flush fails, and it ends.
    func configureCheckpointBeforeClose() {
        var byteCount: Int64 = -1
        // If the size is unknown the setting is kept.
        if let (file, methods) = unsafe walFile() { _ = unsafe methods.xFileSize(file, &byteCount) }
        guard health.isBroken || byteCount == 0 else { return }
        // Cannot fail: the same call succeeded when the connection was opened.
        try? setCheckpointsOnClose(byteCount == 0)
    }

    /// SQLite's own handle of the -wal file, which belongs to the connection; nil if the file is not open.
    @unsafe private func walFile() -> (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods)? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        let code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file)
        // A file without methods is not open.
        guard code == SQLITE_OK, let file = unsafe file, let methods = unsafe file.pointee.pMethods?.pointee else { return nil }
        return unsafe (file, methods)
    }
}

// MARK: - Files that lost their names

/// Files that a connection has open although their names no longer lead to them: they were removed or replaced.
///
/// SQLite does not notice it. Changes that are written to such a file end with the process.
struct LostFiles: OptionSet {
    let rawValue: Int32

    static let database = LostFiles(rawValue: Int32(KEYCHAIN_DATABASE_LOST.rawValue))
    static let wal = LostFiles(rawValue: Int32(KEYCHAIN_WAL_LOST.rawValue))
    /// The -shm file, by which processes lock the store and find pages in the -wal file.
    static let sharedMemory = LostFiles(rawValue: Int32(KEYCHAIN_SHM_LOST.rawValue))
}

extension SQLiteConnection {
    /// Compares the names of the open files with the files that were opened, without opening anything.
    var lostFiles: LostFiles {
        var lost: Int32 = 0
        guard unsafe keychain_lost_files(handle, &lost) == SQLITE_OK else { return .database }
        return LostFiles(rawValue: lost)
    }

    /// Creates a -wal file with the committed content of the one that lost its name.
    ///
    /// Acknowledged changes may be nowhere else. Requires a write transaction, and that no other file is lost: then all processes share
    /// one index and one lock, and the new file matches the index. Returns false if there is another -wal file that is not empty.
    func restoreLostWAL(in location: FileLocation) throws(KeychainFailure) -> Bool {
        let present = try FileStatus.ifPresent(at: location.walPath)
        guard present.map({ $0.kind == .regularFile && $0.byteCount == 0 }) ?? true else { return false }
        let path = RepairCopy.newPath(in: location)
        defer { FileSystem.tryUnlink(path) }
        func naming(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
            do throws(Errno) { try body() } catch { throw FileSystem.creationFailure(error, in: location.directory) }
        }
        try naming { () throws(Errno) in try FileSystem.createPrivateFile(path) }
        try forEachCommittedChunk { _, chunk throws(KeychainFailure) in
            try naming { () throws(Errno) in
                let copy = try OpenFile(path, .append)
                try copy.descriptor.writeAll(chunk)
            }
        }
        try naming { () throws(Errno) in
            try FileSystem.flush(path)
            try FileSystem.rename(path, to: location.walPath)
            try FileSystem.flush(location.directory)
        }
        return true
    }
}
