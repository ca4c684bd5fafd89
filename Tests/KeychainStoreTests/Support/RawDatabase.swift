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

    func integer(_ sql: String) throws -> Int64 {
        var statement: OpaquePointer?
        let code = unsafe sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
        try #require(code == SQLITE_OK)
        defer { unsafe sqlite3_finalize(statement) }
        try #require(unsafe sqlite3_step(statement) == SQLITE_ROW)
        return unsafe sqlite3_column_int64(statement, 0)
    }
}
