// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore

extension SQLiteConnection {
    /// Writes the -wal file's content again, as it is, and flushes it.
    ///
    /// After a flush that failed, the system may take what was to be flushed for written: it is read back as if it were on the disk, and
    /// no later flush brings it there. A process that has ended since cannot have told anybody. What is written again is flushed again.
    ///
    /// To be called within a write transaction: then nobody adds to the file or begins it anew. Readers see the bytes they would have
    /// seen. Through SQLite's own descriptor.
    func rewriteLog() throws(KeychainFailure) {
        var file: UnsafeMutablePointer<sqlite3_file>?
        var code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file)
        // The file belongs to the connection, which outlives the calls. Without methods there is no -wal file.
        guard code == SQLITE_OK, let file = unsafe file, let methods = unsafe file.pointee.pMethods?.pointee else { return }
        var byteCount: Int64 = 0
        code = unsafe methods.xFileSize(file, &byteCount)
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
}
