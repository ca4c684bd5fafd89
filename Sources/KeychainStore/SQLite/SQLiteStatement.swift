// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore

/// A statement prepared once and run many times.
///
/// One thread at a time uses a statement, as its connection.
///
/// Values are not copied: identifiers are bound from the statement's own storage, blobs in place, and columns are read from SQLite's memory.
@safe final class SQLiteStatement {
    // Valid from `init` to `deinit`, which finalizes it.
    private let handle: OpaquePointer
    // 16 bytes for each parameter, so that a bound identifier stays valid as long as the statement.
    private let identifierStorage: UnsafeMutableRawPointer
    private let parameterCount: Int32
    private let health: ConnectionHealth
    private let scanLimit: ScanLimit
    /// The number of rows since the beginning of the run.
    private var rowCount: Int64 = 0

    init(
        _ sql: String, on database: OpaquePointer, health: ConnectionHealth, scanLimit: ScanLimit
    ) throws(KeychainFailure) {
        var prepared: OpaquePointer?
        // The first statement of a connection reads the schema.
        scanLimit.beginPreparing()
        let code = unsafe sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard code == SQLITE_OK, let prepared = unsafe prepared else {
            throw health.record(SQLiteFailure(code: code == SQLITE_OK ? SQLITE_MISUSE : code, action: "preparing a statement"))
        }
        unsafe handle = prepared
        self.health = health
        self.scanLimit = scanLimit
        parameterCount = unsafe sqlite3_bind_parameter_count(prepared)
        unsafe identifierStorage = .allocate(byteCount: max(1, Int(parameterCount)) * Identifier128.byteCount, alignment: 8)
    }

    deinit {
        // In a forked child SQLite's memory is a stale copy and must not be used.
        if !ForkDetection.isForkedChild { unsafe sqlite3_finalize(handle) }
        unsafe identifierStorage.deallocate()
    }

    /// Whether a row is being read.
    var isRunning: Bool { rowCount > 0 }

    /// Advances to the next row.
    ///
    /// Returns false after the last one.
    func step() throws(KeychainFailure) -> Bool {
        scanLimit.beginStep()
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW:
            rowCount += 1
            guard scanLimit.allowsRows(rowCount) else {
                throw health.record(SQLiteFailure(code: SQLITE_INTERRUPT, action: "running a statement"))
            }
            return true
        case SQLITE_DONE: return false
        case let code: throw health.record(SQLiteFailure(code: code, action: "running a statement"))
        }
    }

    /// Ends the run.
    ///
    /// SQLite's result is ignored: it repeats the failure of the last step.
    func reset() {
        rowCount = 0
        unsafe sqlite3_reset(handle)
    }

    /// Runs the statement to completion and ignores its rows.
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

    func bindNull(at index: Int32) {
        unsafe sqlite3_bind_null(handle, index)
    }

    /// Binds a byte string of length 0.
    func bindEmpty(at index: Int32) {
        unsafe sqlite3_bind_zeroblob(handle, index, 0)
    }

    func bind(_ identifier: Identifier128, at index: Int32) {
        // The storage has no bytes for other indices.
        guard index >= 1, index <= parameterCount else { return }
        let storage = unsafe identifierStorage + (Int(index) - 1) * Identifier128.byteCount
        unsafe storage.storeBytes(of: identifier.high.bigEndian, as: UInt64.self)
        unsafe storage.storeBytes(of: identifier.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        // No destructor (SQLITE_STATIC): the storage outlives the binding.
        unsafe sqlite3_bind_blob64(handle, index, storage, UInt64(Identifier128.byteCount), nil)
    }

    /// A byte string to bind; nil is NULL.
    struct Blob {
        let index: Int32
        let bytes: [UInt8]?
        /// Whether the bytes are those of a text.
        var isText = false

        init(index: Int32, bytes: [UInt8]?) {
            self.index = index
            self.bytes = bytes
        }

        init(index: Int32, text: String) {
            self.index = index
            bytes = Array(text.utf8)
            isText = true
        }
    }

    /// Binds byte strings without copying them, and runs `body`, which runs the statement.
    func withBound(
        _ blobs: ArraySlice<Blob>, _ body: () throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        guard let blob = blobs.first else {
            // The bindings must not outlive the buffers.
            defer { unsafe sqlite3_clear_bindings(handle) }
            return try body()
        }
        guard let bytes = blob.bytes, !bytes.isEmpty else {
            if blob.bytes == nil { bindNull(at: blob.index) } else { bindEmpty(at: blob.index) }
            return try withBound(blobs.dropFirst(), body)
        }
        let code = try unsafe bytes.withUnsafeBufferPointer { buffer throws(KeychainFailure) -> Int32 in
            // No destructor (SQLITE_STATIC): the innermost call resets and clears before this buffer's scope ends.
            let code =
                blob.isText
                ? unsafe keychain_sqlite3_bind_text(handle, blob.index, buffer.baseAddress, UInt64(buffer.count))
                : unsafe sqlite3_bind_blob64(handle, blob.index, buffer.baseAddress, UInt64(buffer.count), nil)
            if code == SQLITE_OK { try withBound(blobs.dropFirst(), body) }
            return code
        }
        // The statement has not run. While a row is read, the same code means that its header is damaged.
        if code == SQLITE_TOOBIG { throw KeychainFailure(.parameter, "a value is larger than the store allows", subject: .store) }
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

    /// The identifier in a column; nil if the column does not contain exactly 16 bytes.
    func identifier(at column: Int32) -> Identifier128? {
        // The bytes are valid until the next step or reset, and are read immediately.
        guard let bytes = unsafe sqlite3_column_blob(handle, column),
            unsafe Int(sqlite3_column_bytes(handle, column)) == Identifier128.byteCount
        else { return nil }
        return unsafe Identifier128(buffer: UnsafeRawBufferPointer(start: bytes, count: Identifier128.byteCount))
    }

    /// A copy of the bytes in a column; empty for NULL.
    func bytes(at column: Int32) -> [UInt8] {
        unsafe withBytes(at: column) { unsafe [UInt8]($0) }
    }

    /// Passes the bytes in a column to `body` without copying them.
    ///
    /// `body` must not keep the buffer.
    func withBytes<Result>(at column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // SQLite requires this order. Both results are valid until the next step or reset.
        let start = unsafe sqlite3_column_blob(handle, column)
        let count = unsafe start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))
        return unsafe body(UnsafeRawBufferPointer(start: start, count: count))
    }

    func text(at column: Int32) -> String {
        String(decoding: bytes(at: column), as: UTF8.self)
    }
}
