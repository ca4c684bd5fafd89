// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

extension SQLiteConnection {
    /// Makes the -wal file's content durable, and the names of both files in `directory`; then the connection may empty the -wal file
    /// when it is closed.
    ///
    /// Whoever published the store may have died before its name was flushed; and SQLite, which makes the -wal file, does not say when
    /// flushing its name failed. To be called within a write transaction, which sees to it that there is a -wal file; as long as the
    /// connection is open it stays.
    func makeWALDurable(in directory: String) throws(KeychainFailure) {
        try rewriteWAL()
        do throws(Errno) {
            try FileSystem.flush(directory)
        } catch {
            throw FileSystem.creationFailure(error, in: directory)
        }
        try setCheckpointsOnClose(true)
    }

    /// Writes the -wal file's content again, as it is, and flushes it.
    ///
    /// After a flush that failed, the system may take what was to be flushed for written: it is read back as if it were on the disk, and
    /// no later flush brings it there. A process that has ended since cannot have told anybody. What is written again is flushed again.
    ///
    /// Within a write transaction nobody adds to the file or begins it anew. Readers see the bytes they would have seen. Through SQLite's
    /// own descriptor.
    private func rewriteWAL() throws(KeychainFailure) {
        guard let (file, methods) = unsafe logFile() else { return }
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

    /// Whether the last of all connections, when it is closed, brings the -wal file's content into the database and removes the file.
    ///
    /// Only one that knows the content to be durable may: should the power fail while pages are written into the database, they are
    /// mended from nowhere else. Who only reads does not know, nor does one whose flush has failed.
    func setCheckpointsOnClose(_ isOn: Bool) throws(KeychainFailure) {
        try setFlag(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !isOn)
    }

    /// An empty -wal file, as reading makes one, is removed by whoever closes the store last; a broken connection leaves any other.
    ///
    /// For what happens between the look and the closing to matter, another process would have to write meanwhile, wait for a flush
    /// that fails, and die.
    func configureCheckpointBeforeClose() {
        var byteCount: Int64 = -1
        // Without an answer the setting stays.
        if let (file, methods) = unsafe logFile() { _ = unsafe methods.xFileSize(file, &byteCount) }
        guard health.isBroken || byteCount == 0 else { return }
        // Nobody would hear of a failure; SQLite knows the setting, or the connection would not have been opened.
        try? setCheckpointsOnClose(byteCount == 0)
    }

    /// SQLite's own -wal file, nil when there is none.
    ///
    /// It belongs to the connection.
    @unsafe private func logFile() -> (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods)? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        let code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file)
        // Without methods it is not open.
        guard code == SQLITE_OK, let file = unsafe file, let methods = unsafe file.pointee.pMethods?.pointee else { return nil }
        return unsafe (file, methods)
    }
}
