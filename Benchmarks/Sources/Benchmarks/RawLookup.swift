// SPDX-License-Identifier: Apache-2.0
import CRawSQLite
import Glibc

/// The limit of reading: SQLite alone, one prepared statement, rows of the size of ours under a 16-byte primary key.
@safe final class RawLookup {
    struct Failure: Error {
        let code: Int32
    }

    // Neither pointer is handed out; deinit closes both.
    private var database: OpaquePointer?
    private var statement: OpaquePointer?

    /// Makes and fills a database at `path`.
    init(path: String, rowCount: Int) throws {
        try check(unsafe sqlite3_open(path, &database))
        try execute("PRAGMA journal_mode=WAL; CREATE TABLE item(id BLOB PRIMARY KEY, sealed BLOB) WITHOUT ROWID; BEGIN")
        var insertion: OpaquePointer?
        try check(unsafe sqlite3_prepare_v2(database, "INSERT INTO item VALUES (?, ?)", -1, &insertion, nil))
        let sealed = [UInt8](repeating: 0x5a, count: 400)
        for index in 0..<rowCount {
            try unsafe bindKey(index, insertion)
            // A nil destructor says that the bytes stay where they are until the next binding; they do, until the statement has run.
            try unsafe sealed.withUnsafeBytes { bytes in
                try check(unsafe sqlite3_bind_blob(insertion, 2, bytes.baseAddress, Int32(bytes.count), nil))
                try check(unsafe sqlite3_step(insertion), expecting: SQLITE_DONE)
            }
            unsafe sqlite3_reset(insertion)
        }
        unsafe sqlite3_finalize(insertion)
        try execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        try check(unsafe sqlite3_prepare_v2(database, "SELECT sealed FROM item WHERE id = ?", -1, &statement, nil))
    }

    deinit {
        unsafe sqlite3_finalize(statement)
        unsafe sqlite3_close(database)
    }

    func lookUp(_ index: Int) throws {
        var key = Self.key(index)
        // The key outlives the binding, which ends with the reset.
        try unsafe withUnsafeBytes(of: &key) { bytes in
            try check(unsafe sqlite3_bind_blob(statement, 1, bytes.baseAddress, Int32(bytes.count), nil))
            try check(unsafe sqlite3_step(statement), expecting: SQLITE_ROW)
            guard unsafe sqlite3_column_bytes(statement, 0) == 400 else { throw Failure(code: SQLITE_MISMATCH) }
            unsafe sqlite3_reset(statement)
        }
    }

    private func bindKey(_ index: Int, _ statement: OpaquePointer?) throws {
        var key = Self.key(index)
        // SQLITE_TRANSIENT: SQLite copies the bytes at once.
        let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try unsafe withUnsafeBytes(of: &key) { bytes in
            try check(unsafe sqlite3_bind_blob(statement, 1, bytes.baseAddress, Int32(bytes.count), transient))
        }
    }

    /// Spread over the whole range, as digests are.
    private static func key(_ index: Int) -> (UInt64, UInt64) {
        let first = UInt64(truncatingIfNeeded: index &+ 1) &* 0x9e37_79b9_7f4a_7c15
        return (first.byteSwapped ^ first, first &* 0xbf58_476d_1ce4_e5b9)
    }

    private func execute(_ sql: String) throws { try check(unsafe sqlite3_exec(database, sql, nil, nil, nil)) }

    private func check(_ code: Int32, expecting expected: Int32 = SQLITE_OK) throws {
        guard code == expected else { throw Failure(code: code) }
    }
}
