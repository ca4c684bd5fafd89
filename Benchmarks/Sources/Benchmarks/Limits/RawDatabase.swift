// SPDX-License-Identifier: Apache-2.0
import CRawSQLite

/// SQLite alone, with rows of the keychain's size and a 16-byte primary key.
@safe final class RawDatabase {
    struct Failure: Error {
        let code: Int32
    }

    /// The number of encrypted bytes in a row of the keychain.
    static let rowByteCount = 400

    /// SQLite copies bound values immediately.
    private static let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    // The connection and the statements stay private; deinit closes them.
    private var connection: OpaquePointer?
    private var insertion: OpaquePointer?
    private var lookup: OpaquePointer?
    private let row = [UInt8](repeating: 0x5a, count: rowByteCount)

    init(path: String) throws {
        try Self.check(unsafe sqlite3_open(path, &connection))
        try execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE item(id BLOB PRIMARY KEY, sealed BLOB) WITHOUT ROWID")
        try Self.check(unsafe sqlite3_prepare_v2(connection, "INSERT INTO item VALUES (?, ?)", -1, &insertion, nil))
        try Self.check(unsafe sqlite3_prepare_v2(connection, "SELECT sealed FROM item WHERE id = ?", -1, &lookup, nil))
    }

    deinit {
        unsafe sqlite3_finalize(insertion)
        unsafe sqlite3_finalize(lookup)
        unsafe sqlite3_close(connection)
    }

    func fill(rowCount: Int) throws {
        try execute("BEGIN")
        for index in 0..<rowCount { try insert(index) }
        try execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Outside a transaction it returns after the row was flushed.
    func insert(_ index: Int) throws {
        try unsafe bindKey(index, insertion)
        try unsafe row.withUnsafeBytes { bytes in
            try Self.check(unsafe sqlite3_bind_blob(insertion, 2, bytes.baseAddress, Int32(bytes.count), Self.transient))
        }
        let code = unsafe sqlite3_step(insertion)
        unsafe sqlite3_reset(insertion)
        try Self.check(code, expecting: SQLITE_DONE)
    }

    func lookUp(_ index: Int) throws {
        try unsafe bindKey(index, lookup)
        let code = unsafe sqlite3_step(lookup)
        let byteCount = unsafe sqlite3_column_bytes(lookup, 0)
        unsafe sqlite3_reset(lookup)
        try Self.check(code, expecting: SQLITE_ROW)
        guard Int(byteCount) == Self.rowByteCount else { throw Failure(code: SQLITE_MISMATCH) }
    }

    private func bindKey(_ index: Int, _ statement: OpaquePointer?) throws {
        var key = Self.key(index)
        try unsafe withUnsafeBytes(of: &key) { bytes in
            try Self.check(unsafe sqlite3_bind_blob(statement, 1, bytes.baseAddress, Int32(bytes.count), Self.transient))
        }
    }

    /// Distributed over the whole range, like digests.
    private static func key(_ index: Int) -> (UInt64, UInt64) {
        let first = UInt64(truncatingIfNeeded: index &+ 1) &* 0x9e37_79b9_7f4a_7c15
        return (first.byteSwapped ^ first, first &* 0xbf58_476d_1ce4_e5b9)
    }

    private func execute(_ sql: String) throws { try Self.check(unsafe sqlite3_exec(connection, sql, nil, nil, nil)) }

    private static func check(_ code: Int32, expecting expected: Int32 = SQLITE_OK) throws {
        guard code == expected else { throw Failure(code: code) }
    }
}
