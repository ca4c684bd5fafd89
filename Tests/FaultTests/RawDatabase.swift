// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainStore

/// A database opened without the engine, to tamper with it.
@safe final class RawDatabase {
    struct Failure: Error {
        let code: Int32
    }

    // Private; closed by deinit, when no statement remains.
    private var database: OpaquePointer?

    /// `stamps: false`: without page checksums, as a program without this VFS writes.
    init(_ path: String, stamps: Bool = true) throws {
        let vfsName = stamps ? try PageChecksums.vfsName(over: nil) : nil
        try check(unsafe sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfsName))
        try check(unsafe sqlite3_busy_timeout(database, 10_000))
    }

    deinit { unsafe sqlite3_close(database) }

    func execute(_ sql: String) throws { try check(unsafe sqlite3_exec(database, sql, nil, nil, nil)) }

    /// The first column of the only row.
    func integer(_ sql: String) throws -> Int {
        var statement: OpaquePointer?
        try check(unsafe sqlite3_prepare_v2(database, sql, -1, &statement, nil))
        defer { unsafe sqlite3_finalize(statement) }
        guard unsafe sqlite3_step(statement) == SQLITE_ROW else { throw Failure(code: SQLITE_ERROR) }
        return Int(unsafe sqlite3_column_int64(statement, 0))
    }

    /// The first column of the only row.
    func blob(_ sql: String) throws -> [UInt8] {
        var statement: OpaquePointer?
        try check(unsafe sqlite3_prepare_v2(database, sql, -1, &statement, nil))
        defer { unsafe sqlite3_finalize(statement) }
        guard unsafe sqlite3_step(statement) == SQLITE_ROW else { throw Failure(code: SQLITE_ERROR) }
        let bytes = unsafe sqlite3_column_blob(statement, 0)
        let count = Int(unsafe sqlite3_column_bytes(statement, 0))
        // SQLite's copy is valid until the statement is finalized, and the bytes are copied before.
        return unsafe Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}
