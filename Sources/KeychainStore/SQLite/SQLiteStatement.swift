// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// A statement prepared once and run many times.
///
/// Used by one thread at a time, as its connection is.
///
/// Nothing is copied that need not be: identifiers are bound from room of the statement's own, blobs from where they lie,
/// and columns are read where SQLite has them.
@safe final class SQLiteStatement {
    // Valid from `init` to `deinit`: nobody else finalizes it.
    private let handle: OpaquePointer
    // Sixteen bytes for each parameter, so that a bound identifier stays valid as long as the statement.
    private let identifierStorage: UnsafeMutableRawPointer
    private let parameterCount: Int32
    private let health: ConnectionHealth

    init(_ sql: String, on database: OpaquePointer, health: ConnectionHealth) throws(KeychainFailure) {
        var prepared: OpaquePointer?
        let code = unsafe sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard code == SQLITE_OK, let prepared = unsafe prepared else {
            throw health.record(SQLiteFailure(code: code == SQLITE_OK ? SQLITE_MISUSE : code, action: "preparing a statement"))
        }
        unsafe handle = prepared
        self.health = health
        parameterCount = unsafe sqlite3_bind_parameter_count(prepared)
        unsafe identifierStorage = .allocate(byteCount: max(1, Int(parameterCount)) * Identifier128.byteCount, alignment: 8)
    }

    deinit {
        // In a forked child SQLite's memory is a stale copy: leave it alone.
        if !CurrentProcess.isForked { unsafe sqlite3_finalize(handle) }
        unsafe identifierStorage.deallocate()
    }

    /// Moves to the next row; false after the last one.
    func step() throws(KeychainFailure) -> Bool {
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw health.record(SQLiteFailure(code: code, action: "running a statement"))
        }
    }

    /// Ends the run.
    ///
    /// Its result says again what the last step said, so it is no news.
    func reset() {
        unsafe sqlite3_reset(handle)
    }

    /// Runs the statement to its end.
    ///
    /// Rows that it yields are passed over.
    func run() throws(KeychainFailure) {
        defer { reset() }
        while try step() {}
    }

    // MARK: Parameters, counted from 1

    func bind(_ number: Int64, at index: Int32) {
        unsafe sqlite3_bind_int64(handle, index, number)
    }

    func bind(_ number: Double, at index: Int32) {
        unsafe sqlite3_bind_double(handle, index, number)
    }

    func bind(_ flag: Bool, at index: Int32) {
        bind(flag ? 1 : 0 as Int64, at: index)
    }

    func bind(_ identifier: Identifier128, at index: Int32) {
        // A parameter the statement does not have would lie outside the room.
        guard index >= 1, index <= parameterCount else { return }
        let room = unsafe identifierStorage + (Int(index) - 1) * Identifier128.byteCount
        unsafe room.storeBytes(of: identifier.high.bigEndian, as: UInt64.self)
        unsafe room.storeBytes(of: identifier.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        // No destructor (SQLITE_STATIC): the room outlives the binding.
        unsafe sqlite3_bind_blob64(handle, index, room, UInt64(Identifier128.byteCount), nil)
    }

    /// A parameter that is a byte string; nil is NULL.
    struct Blob {
        let index: Int32
        let bytes: [UInt8]?
    }

    /// Binds byte strings where they lie for the time of `body`, in which the statement runs.
    func withBound(
        _ blobs: ArraySlice<Blob>, _ body: () throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        guard let blob = blobs.first else {
            // Afterwards no binding may point at bytes whose scope ends.
            defer { unsafe sqlite3_clear_bindings(handle) }
            return try body()
        }
        guard let bytes = blob.bytes, !bytes.isEmpty else {
            if blob.bytes == nil {
                unsafe sqlite3_bind_null(handle, blob.index)
            } else {
                unsafe sqlite3_bind_zeroblob(handle, blob.index, 0)
            }
            return try withBound(blobs.dropFirst(), body)
        }
        let code = try unsafe bytes.withUnsafeBufferPointer { buffer throws(KeychainFailure) -> Int32 in
            // No destructor (SQLITE_STATIC): the innermost call resets and clears before this buffer's scope ends.
            let code = unsafe sqlite3_bind_blob64(handle, blob.index, buffer.baseAddress, UInt64(buffer.count), nil)
            if code == SQLITE_OK { try withBound(blobs.dropFirst(), body) }
            return code
        }
        if code != SQLITE_OK { throw health.record(SQLiteFailure(code: code, action: "binding a value")) }
    }

    // MARK: Columns of the current row, counted from 0

    func integer(at column: Int32) -> Int64 {
        unsafe sqlite3_column_int64(handle, column)
    }

    func real(at column: Int32) -> Double {
        unsafe sqlite3_column_double(handle, column)
    }

    func isNull(at column: Int32) -> Bool {
        unsafe sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    /// The identifier in a column; nil when it does not hold exactly sixteen bytes.
    func identifier(at column: Int32) -> Identifier128? {
        // SQLite keeps the bytes until the next step or reset; they are read at once.
        guard let bytes = unsafe sqlite3_column_blob(handle, column),
            unsafe Int(sqlite3_column_bytes(handle, column)) == Identifier128.byteCount
        else { return nil }
        return unsafe Identifier128(buffer: UnsafeRawBufferPointer(start: bytes, count: Identifier128.byteCount))
    }

    /// A copy of the bytes in a column; NULL gives none.
    func bytes(at column: Int32) -> [UInt8] {
        unsafe withBytes(at: column) { unsafe [UInt8]($0) }
    }

    /// Lends the bytes in a column where SQLite has them; `body` must not keep the buffer.
    func withBytes<Result>(at column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The pointer first, then the count, as SQLite asks. Both hold until the next step or reset.
        let start = unsafe sqlite3_column_blob(handle, column)
        let count = unsafe start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))
        return unsafe body(UnsafeRawBufferPointer(start: start, count: count))
    }

    func text(at column: Int32) -> String {
        String(decoding: bytes(at: column), as: UTF8.self)
    }
}
