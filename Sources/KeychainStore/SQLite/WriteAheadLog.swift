// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
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

    /// Rewrites the -wal file with its own content and flushes it.
    ///
    /// After a failed flush the kernel may mark pages clean that never reached the disk: they are read back from the cache, and no later
    /// flush writes them. A process that has ended since cannot have reported the failure. Rewriting marks the pages dirty again.
    ///
    /// Requires a write transaction, during which no process appends to or restarts the file. Readers see the same bytes throughout. Uses
    /// SQLite's own descriptor.
    private func rewriteWAL() throws(KeychainFailure) {
        guard let (file, methods) = unsafe walFile() else { return }
        var byteCount: Int64 = 0
        var code = unsafe methods.xFileSize(file, &byteCount)
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var offset: Int64 = 0
        while code == SQLITE_OK, offset < byteCount {
            let count = Int32(min(Int64(buffer.count), byteCount - offset))
            // The buffer has at least `count` bytes.
            code = unsafe methods.xRead(file, &buffer, count, offset)
            if code == SQLITE_OK { code = unsafe methods.xWrite(file, buffer, count, offset) }
            offset += Int64(count)
        }
        if code == SQLITE_OK, byteCount > 0 { code = unsafe methods.xSync(file, SQLITE_SYNC_NORMAL) }
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "making the -wal file durable")) }
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
