// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Testing

/// A database opened behind the store's back, as another program would.
@safe final class RawDatabase {
    // Valid until `deinit`.
    private let handle: OpaquePointer

    init(_ path: String) throws {
        var opened: OpaquePointer?
        let code = unsafe sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
        unsafe handle = try #require(unsafe code == SQLITE_OK ? opened : nil)
    }

    deinit { unsafe sqlite3_close_v2(handle) }

    func run(_ sql: String) throws {
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(sql) failed with \(code)")
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
