// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// An open database file with its prepared statements.
///
/// One thread at a time.
@safe final class SQLiteConnection {
    // Valid from `init` to `deinit`: nobody else closes it. Only this type's own files use it.
    let handle: OpaquePointer
    let health = ConnectionHealth()
    let busyHandler: BusyHandler
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
        busyHandler = BusyHandler(limitMilliseconds: busyTimeoutMilliseconds)
        statements = Array(repeating: nil, count: StoreStatement.allCases.count)
        // The handler is called only from within calls on this connection, which keeps `busyHandler` alive.
        unsafe sqlite3_busy_handler(
            handle,
            { context, attempt in
                guard let context = unsafe context else { return 0 }
                return unsafe Unmanaged<BusyHandler>.fromOpaque(context).takeUnretainedValue().wait(attempt: Int(attempt)) ? 1 : 0
            }, Unmanaged.passUnretained(busyHandler).toOpaque())
        try setCheckpointsOnClose(false)
    }

    deinit {
        statements.removeAll()
        // In a forked child the locks belong to the parent, and closing would act on its files.
        guard !CurrentProcess.isForked else { return }
        configureCheckpointBeforeClose()
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

/// What every connection to a store is set to, whoever opens it.
extension SQLiteConnection {
    /// The settings that neither need the file nor change it.
    func applySafetySettings() throws(KeychainFailure) {
        try setFlag(SQLITE_DBCONFIG_DEFENSIVE, true)
        try setFlag(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, false)
        try setFlag(SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
        try setFlag(SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
        try setFlag(SQLITE_DBCONFIG_ENABLE_VIEW, false)
        try setFlag(SQLITE_DBCONFIG_DQS_DML, false)
        try setFlag(SQLITE_DBCONFIG_DQS_DDL, false)
        setLimit(SQLITE_LIMIT_LENGTH, StoreSchema.largestRowByteCount)
        setLimit(SQLITE_LIMIT_ATTACHED, 0)
        // The cache holds the inner pages of an index over a million items. A -wal file that soon begins anew at its start is
        // flushed in half the time, because it does not grow; after a large value it shrinks again.
        try execute(
            """
            PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA secure_delete = ON;
            PRAGMA cache_size = -4096; PRAGMA wal_autocheckpoint = 250; PRAGMA journal_size_limit = 8388608
            """)
    }

    /// Makes the database one with a -wal file.
    ///
    /// Does nothing when it is one.
    func switchToWAL() throws(KeychainFailure) {
        var mode = ""
        try query("PRAGMA journal_mode = WAL") { mode = $0.text(at: 0) }
        guard mode == "wal" else { throw KeychainFailure(.notAvailable, "SQLite cannot use a write-ahead log here") }
    }

    /// Chooses when commits wait for the disk, and believes it only after reading it back.
    func apply(_ synchronous: SynchronousMode) throws(KeychainFailure) {
        try execute("PRAGMA synchronous = \(synchronous.rawValue)")
        guard try integer(of: "PRAGMA synchronous") == Int64(synchronous.rawValue) else {
            throw KeychainFailure(.notAvailable, "SQLite did not take the setting that makes writes durable")
        }
    }
}

/// When a commit waits for the disk.
///
/// The raw value is SQLite's.
package enum SynchronousMode: Int, Sendable {
    /// Commits are not durable.
    ///
    /// For the test that proves that the other mode flushes; no configuration leads here.
    case normal = 1
    /// Every commit is on the disk when it returns.
    case full = 2
}

/// How long a connection waits for a lock that another one holds.
///
/// SQLite asks it again and again: wait or give up?
///
/// SQLite's own timeout counts its sleeps and not the time, so that a loaded machine waits much longer than was said.
final class BusyHandler {
    private let limitNanoseconds: UInt64
    private var deadline: Deadline

    private enum Deadline {
        /// The time begins with the first wait.
        case fromFirstWait
        case at(UInt64)
        case none
    }

    init(limitMilliseconds: Int) {
        limitNanoseconds = UInt64(clamping: limitMilliseconds) * 1_000_000
        deadline = .fromFirstWait
    }

    func resetDeadline() { deadline = .fromFirstWait }

    func setDeadline(atNanoseconds time: UInt64) { deadline = .at(time) }

    func neverWait() { deadline = .none }

    /// Sleeps a little and answers true; false once the time is up.
    func wait(attempt: Int) -> Bool {
        let now = MonotonicClock.nowNanoseconds()
        let end: UInt64
        switch deadline {
        case .none: return false
        case .at(let time): end = time
        case .fromFirstWait:
            end = now &+ limitNanoseconds
            deadline = .at(end)
        }
        guard now < end else { return false }
        // Doubling from a quarter of a millisecond, the length of a write, to eight; varied, so that waiters do not march in step.
        let step = UInt64(250_000) << UInt64(min(attempt, 5))
        MonotonicClock.sleep(nanoseconds: min(UInt64.random(in: step / 2...step), end - now))
        return true
    }
}
