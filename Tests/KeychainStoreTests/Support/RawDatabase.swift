// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainStore
import Testing

/// A database opened behind the store's back, as a program of somebody would who knows the format.
@safe final class RawDatabase {
    // Valid until `deinit`.
    private let handle: OpaquePointer

    /// `stamps: false`: as a program would that knows nothing of checksums.
    init(_ path: String, stamps: Bool = true) throws {
        var opened: OpaquePointer?
        let vfsName = stamps ? try PageChecksums.vfsName(over: nil) : nil
        let code = unsafe sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfsName)
        unsafe handle = try #require(unsafe code == SQLITE_OK ? opened : nil)
    }

    deinit { unsafe sqlite3_close_v2(handle) }

    func run(_ sql: String) throws {
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(sql) failed with \(code)")
    }

    /// SQLITE_IOERR_DATA, which Swift does not import: SQLITE_IOERR | (32<<8).
    static let badChecksum: Int32 = 10 | 32 << 8

    /// Asks the layer below SQLite for a piece of the file.
    func fileBytes(_ byteCount: Int, at offset: Int) throws -> (code: Int32, bytes: [UInt8]) {
        var file: UnsafeMutablePointer<sqlite3_file>?
        try #require(unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK)
        let open = try unsafe #require(unsafe file)
        var bytes = [UInt8](repeating: 0, count: byteCount)
        // The file belongs to the connection, and the buffer has so many bytes.
        let read = try unsafe #require(unsafe open.pointee.pMethods?.pointee.xRead)
        return unsafe (read(open, &bytes, Int32(byteCount), Int64(offset)), bytes)
    }

    func integer(_ sql: String) throws -> Int64 {
        var statement: OpaquePointer?
        let code = unsafe sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
        try #require(code == SQLITE_OK)
        defer { unsafe sqlite3_finalize(statement) }
        try #require(unsafe sqlite3_step(statement) == SQLITE_ROW)
        return unsafe sqlite3_column_int64(statement, 0)
    }
}
