// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A database as anybody with SQLite can open it, to put into a store's place or to tamper with one.
@safe final class RawDatabase {
    struct Failure: Error {
        let code: Int32
    }

    // Never handed out; closed by deinit, when no statement is left.
    private var database: OpaquePointer?

    init(_ path: String) throws {
        try check(unsafe sqlite3_open(path, &database))
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

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}
