// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainStore

/// A database as anybody can open it who knows the format, to tamper with it.
@safe final class RawDatabase {
    struct Failure: Error {
        let code: Int32
    }

    // Never handed out; closed by deinit, when no statement is left.
    private var database: OpaquePointer?

    /// `stamps: false`: as anybody with SQLite can, who knows nothing of checksums.
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

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}
