// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import CSQLite
internal import KeychainCore

/// An open database file with its prepared statements.
///
/// One thread at a time.
@safe final class SQLiteConnection {
    // Valid from `init` to `deinit`: nobody else closes it. Only this type's own files use it.
    let handle: OpaquePointer
    let health = ConnectionHealth()
    let busyWait: BusyWait
    private var statements: [SQLiteStatement?]

    enum Access {
        /// Reads and writes; where the file itself is read-only, SQLite falls back to reading.
        case readWrite
        /// Reads a file that nobody can change, without locks and without files beside it.
        case immutable
    }

    /// Opens an existing file.
    ///
    /// Never creates one and follows no symbolic link, so `path` must have none.
    init(path: String, access: Access, vfsName: String? = nil, busyTimeoutMilliseconds: Int) throws(KeychainFailure) {
        try Self.checkLibrary()
        let vfsName = try PageChecksums.vfsName(over: vfsName)
        let name: String
        var flags = SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        switch access {
        case .readWrite:
            name = path
            flags |= SQLITE_OPEN_READWRITE
        case .immutable:
            name = Self.uri(forPath: path) + "?immutable=1"
            flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        }
        var opened: OpaquePointer?
        let code = unsafe sqlite3_open_v2(name, &opened, flags, vfsName)
        guard code == SQLITE_OK, let opened = unsafe opened else {
            // SQLite gives a handle even when it fails, to be closed; nil is allowed too.
            unsafe sqlite3_close_v2(opened)
            throw SQLiteFailure(code: code == SQLITE_OK ? SQLITE_NOMEM : code, action: "opening").keychainFailure
        }
        unsafe handle = opened
        busyWait = BusyWait(limitMilliseconds: busyTimeoutMilliseconds)
        statements = Array(repeating: nil, count: StoreStatement.allCases.count)
        // The handler is called only from within calls on this connection, which keeps `busyWait` alive.
        unsafe sqlite3_busy_handler(
            handle,
            { context, attempt in
                guard let context = unsafe context else { return 0 }
                return unsafe Unmanaged<BusyWait>.fromOpaque(context).takeUnretainedValue().wait(attempt: Int(attempt)) ? 1 : 0
            }, Unmanaged.passUnretained(busyWait).toOpaque())
        try emptyLogWhenClosed(false)
    }

    deinit {
        statements.removeAll()
        // In a forked child the locks belong to the parent, and closing would act on its files.
        guard !keychain_process_is_forked() else { return }
        settleLogBeforeClosing()
        unsafe sqlite3_close_v2(handle)
    }

    /// STRICT tables came with 3.37; a build without threads cannot be used from several.
    private static func checkLibrary() throws(KeychainFailure) {
        guard sqlite3_libversion_number() >= 3_037_000 else {
            throw KeychainFailure(.notAvailable, "SQLite 3.37 or newer is needed; this system has an older one")
        }
        guard sqlite3_threadsafe() != 0 else {
            throw KeychainFailure(.notAvailable, "this system's SQLite was built without threads")
        }
    }

    private static func uri(forPath path: String) -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        var uri = Array("file:".utf8)
        for byte in path.utf8 {
            if plain.contains(byte) {
                uri.append(byte)
            } else {
                uri += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: uri, as: UTF8.self)
    }

    // MARK: Statements

    /// The statement, prepared at its first use.
    func statement(_ name: StoreStatement) throws(KeychainFailure) -> SQLiteStatement {
        if let statement = statements[name.rawValue] { return statement }
        let statement = try unsafe SQLiteStatement(name.sql, on: handle, health: health)
        statements[name.rawValue] = statement
        return statement
    }

    func run(_ name: StoreStatement) throws(KeychainFailure) {
        try statement(name).run()
    }

    /// Runs SQL that is needed once.
    func execute(_ sql: String) throws(KeychainFailure) {
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "setting up")) }
    }

    func prepare(_ sql: String) throws(KeychainFailure) -> SQLiteStatement {
        try unsafe SQLiteStatement(sql, on: handle, health: health)
    }

    /// Runs SQL that is needed once and hands over its rows.
    func query(
        _ sql: String, _ body: (SQLiteStatement) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        let statement = try prepare(sql)
        defer { statement.reset() }
        while try statement.step() { try body(statement) }
    }

    func integer(of sql: String) throws(KeychainFailure) -> Int64? {
        var result: Int64?
        try query(sql) { result = $0.integer(at: 0) }
        return result
    }

    // MARK: The connection as a whole

    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Whether SQLite could open the file only for reading.
    var isReadOnly: Bool { unsafe sqlite3_db_readonly(handle, "main") == 1 }

    /// The number of the row inserted last.
    var lastInsertedNumber: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

    /// Copies the -wal file's content into the database, flushes that, and empties the -wal.
    ///
    /// False: another connection was in the way.
    func checkpointAndTruncate() throws(KeychainFailure) -> Bool {
        let code = unsafe sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        let failure = SQLiteFailure(code: code, action: "emptying the -wal file")
        if code == SQLITE_OK { return true }
        if failure.isBusy { return false }
        throw health.record(failure)
    }

    func setFlag(_ option: Int32, _ isOn: Bool) throws(KeychainFailure) {
        let code = unsafe keychain_sqlite3_set_flag(handle, option, isOn ? 1 : 0)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "setting up")) }
    }

    func setLimit(_ limit: Int32, _ value: Int32) {
        unsafe sqlite3_limit(handle, limit, value)
    }

    /// The first bytes of the file as they are, without a lock and whatever they are; zeros where the file has ended.
    ///
    /// Through SQLite's own descriptor: opening another one and closing it would drop the locks of this process.
    func firstBytes(_ count: Int) throws(KeychainFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var file: UnsafeMutablePointer<sqlite3_file>?
        var code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        // The file belongs to the connection, which outlives the call; the buffer has `count` bytes.
        if code == SQLITE_OK, let file = unsafe file, let read = unsafe file.pointee.pMethods?.pointee.xRead {
            code = unsafe read(file, &bytes, Int32(count), 0)
        }
        guard code == SQLITE_OK || code == Self.readWasShort else {
            throw health.record(SQLiteFailure(code: code, action: "reading the file's header"))
        }
        return bytes
    }

    /// SQLITE_IOERR_SHORT_READ, which Swift does not import: it is SQLITE_IOERR | (2<<8).
    private static let readWasShort: Int32 = 10 | 2 << 8

    /// Leaves room at the end of each page of a database that has no page yet.
    func reserveBytesPerPage(_ count: Int32) throws(KeychainFailure) {
        var count = count
        let code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "reserving bytes")) }
    }
}
