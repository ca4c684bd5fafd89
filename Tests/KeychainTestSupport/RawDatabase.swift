// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainStore

/// A database opened without the store, as by another program, or to tamper with it.
@safe package final class RawDatabase {
    package struct Failure: Error {
        let code: Int32
        let sql: String
    }

    // Private; closed by deinit, when no statement remains.
    private var database: OpaquePointer?

    /// Opens a database, or creates it.
    ///
    /// `stamps: false`: without page checksums, as a program without this VFS writes. `baseName`: the VFS below the one with checksums.
    package init(_ path: String, stamps: Bool = true, over baseName: String? = nil) throws {
        let vfsName = stamps ? try PageChecksums.vfsName(over: baseName) : nil
        try check(unsafe sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfsName))
        try check(unsafe sqlite3_busy_timeout(database, 10_000))
    }

    deinit { unsafe sqlite3_close(database) }

    package func execute(_ sql: String) throws { try check(unsafe sqlite3_exec(database, sql, nil, nil, nil), sql) }

    /// The first column of the only row.
    package func integer(_ sql: String) throws -> Int {
        try unsafe readRow(sql) { statement in Int(unsafe sqlite3_column_int64(statement, 0)) }
    }

    /// The first column of the only row.
    package func blob(_ sql: String) throws -> [UInt8] {
        try unsafe readRow(sql) { statement in
            let bytes = unsafe sqlite3_column_blob(statement, 0)
            let count = Int(unsafe sqlite3_column_bytes(statement, 0))
            // SQLite's copy is valid until the statement is finalized, and the bytes are copied before.
            return unsafe Array(UnsafeRawBufferPointer(start: bytes, count: count))
        }
    }

    /// Reads a part of the file through the VFS.
    package func fileBytes(_ byteCount: Int, at offset: Int) throws -> (code: Int32, bytes: [UInt8]) {
        var file: UnsafeMutablePointer<sqlite3_file>?
        try check(unsafe sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file))
        guard let file = unsafe file, let read = unsafe file.pointee.pMethods?.pointee.xRead else {
            throw Failure(code: SQLITE_ERROR, sql: "")
        }
        var bytes = [UInt8](repeating: 0, count: byteCount)
        // The file belongs to the connection, and the buffer has `byteCount` bytes.
        return unsafe (read(file, &bytes, Int32(byteCount), Int64(offset)), bytes)
    }

    private func readRow<Result>(_ sql: String, _ read: (OpaquePointer?) -> Result) throws -> Result {
        var statement: OpaquePointer?
        try check(unsafe sqlite3_prepare_v2(database, sql, -1, &statement, nil), sql)
        defer { unsafe sqlite3_finalize(statement) }
        guard unsafe sqlite3_step(statement) == SQLITE_ROW else { throw Failure(code: SQLITE_ERROR, sql: sql) }
        return unsafe read(statement)
    }

    private func check(_ code: Int32, _ sql: String = "") throws {
        guard code == SQLITE_OK else { throw Failure(code: code, sql: sql) }
    }
}
