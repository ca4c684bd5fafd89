// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import CSQLiteShims
internal import KeychainCore
internal import KeychainSystem

/// An open database file with its prepared statements.
///
/// One thread at a time uses a connection.
@safe final class SQLiteConnection {
    // Valid from `init` to `deinit`, which closes it. Only the files of this type use it.
    let handle: OpaquePointer
    let health = ConnectionHealth()
    let busyHandler: BusyHandler
    let scanLimit: ScanLimit
    private var statements: [SQLiteStatement?]
    /// Empty until the first statement of synchronization.
    private var syncStatements: [SQLiteStatement?] = []

    enum Access {
        /// For reading and writing. SQLite falls back to reading if the file itself is read-only.
        case readWrite
        /// For reading a file that no process can change, without locks and without -wal and -shm files.
        case immutable
    }

    /// Opens an existing file.
    ///
    /// Fails if the file does not exist or `path` contains a symbolic link.
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
            // SQLite usually returns a handle even if it fails, which must be closed. Closing nil is a no-op.
            unsafe sqlite3_close_v2(opened)
            throw SQLiteFailure(code: code == SQLITE_OK ? SQLITE_NOMEM : code, action: "opening").keychainFailure
        }
        unsafe handle = opened
        busyHandler = BusyHandler(limitMilliseconds: busyTimeoutMilliseconds)
        scanLimit = ScanLimit(path: path)
        statements = Array(repeating: nil, count: StoreStatement.allCases.count)
        // The handler is called only from within calls on this connection, which keeps `busyHandler` alive.
        unsafe sqlite3_busy_handler(
            handle,
            { context, attempt in
                guard let context = unsafe context else { return 0 }
                return unsafe Unmanaged<BusyHandler>.fromOpaque(context).takeUnretainedValue().wait(attempt: Int(attempt)) ? 1 : 0
            }, Unmanaged.passUnretained(busyHandler).toOpaque())
        // As above, for `scanLimit`.
        unsafe sqlite3_progress_handler(
            handle, ScanLimit.instructionsPerCall,
            { context in
                guard let context = unsafe context else { return 0 }
                return unsafe Unmanaged<ScanLimit>.fromOpaque(context).takeUnretainedValue().countInstructions() ? 0 : 1
            }, Unmanaged.passUnretained(scanLimit).toOpaque())
        try setCheckpointsOnClose(false)
    }

    deinit {
        statements.removeAll()
        syncStatements.removeAll()
        // In a forked child the locks belong to the parent, and closing would affect its files.
        guard !ForkDetection.isForkedChild else { return }
        configureCheckpointBeforeClose()
        unsafe sqlite3_close_v2(handle)
    }

    /// Throws unless the library supports STRICT tables (3.37) and threads.
    private static func checkLibrary() throws(KeychainFailure) {
        guard sqlite3_libversion_number() >= 3_037_000 else {
            throw KeychainFailure(.notAvailable, "SQLite 3.37 or later is required; this system has an older version", subject: .store)
        }
        guard sqlite3_threadsafe() != 0 else {
            throw KeychainFailure(.notAvailable, "this system's SQLite was built without support for threads", subject: .store)
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

    /// Returns the statement, which is prepared on first use.
    func statement(_ name: StoreStatement) throws(KeychainFailure) -> SQLiteStatement {
        if let statement = statements[name.rawValue] { return statement }
        let statement = try unsafe SQLiteStatement(name.sql, on: handle, health: health, scanLimit: scanLimit)
        statements[name.rawValue] = statement
        return statement
    }

    /// Returns the statement, which is prepared on first use.
    func statement(_ name: SyncStatement) throws(KeychainFailure) -> SQLiteStatement {
        if syncStatements.isEmpty { syncStatements = Array(repeating: nil, count: SyncStatement.allCases.count) }
        if let statement = syncStatements[name.rawValue] { return statement }
        let statement = try unsafe SQLiteStatement(name.sql, on: handle, health: health, scanLimit: scanLimit)
        syncStatements[name.rawValue] = statement
        return statement
    }

    func run(_ name: StoreStatement) throws(KeychainFailure) {
        try statement(name).run()
    }

    /// Runs SQL without caching the statement.
    func execute(_ sql: String) throws(KeychainFailure) {
        scanLimit.beginStep()
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "setting up")) }
    }

    func prepare(_ sql: String) throws(KeychainFailure) -> SQLiteStatement {
        try unsafe SQLiteStatement(sql, on: handle, health: health, scanLimit: scanLimit)
    }

    /// Runs SQL without caching the statement, and passes each row to `body`.
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

    /// The number of rows that the last statement inserted, changed, or deleted.
    var changedRowCount: Int { Int(unsafe sqlite3_changes(handle)) }

    /// Copies the -wal file's content into the database, flushes the database, and truncates the -wal file.
    ///
    /// Returns false if another connection held a lock until the deadline.
    func checkpointAndTruncate() throws(KeychainFailure) -> Bool {
        let code = unsafe sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        let failure = SQLiteFailure(code: code, action: "emptying the -wal file")
        if code == SQLITE_OK { return true }
        if failure.isBusy { return false }
        throw health.record(failure)
    }

    /// Copies the -wal file's content into the database and flushes the database, as far as no reader needs the older content.
    ///
    /// Returns whether all of it was copied. Waits for nothing and changes the -wal file in no way.
    func checkpoint() throws(KeychainFailure) -> Bool {
        var (frameCount, copiedCount): (Int32, Int32) = (0, 0)
        let code = unsafe sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frameCount, &copiedCount)
        let failure = SQLiteFailure(code: code, action: "copying the -wal file into the database")
        if failure.isBusy { return false }
        guard code == SQLITE_OK else { throw health.record(failure) }
        return frameCount == copiedCount
    }

    /// Leaves checkpoints to `checkpointIfDue`.
    func disableCheckpointsInCommits() {
        // Cannot fail for an open connection.
        unsafe sqlite3_wal_autocheckpoint(handle, 0)
    }

    /// Copies the -wal file's content into the database if it is large, as far as no reader needs the older content.
    ///
    /// Best effort, as SQLite's own checkpoint after a commit: a later commit retries.
    func checkpointIfDue() {
        guard walFrameCount >= Self.framesPerCheckpoint else { return }
        unsafe sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    }

    /// The number of pages in the -wal file; 0 if it is not known.
    var walFrameCount: Int64 {
        var frameCount: Int64 = 0
        return unsafe keychain_wal_frame_count(handle, &frameCount) == SQLITE_OK ? frameCount : 0
    }

    private static let framesPerCheckpoint: Int32 = 250

    func setFlag(_ option: Int32, _ isOn: Bool) throws(KeychainFailure) {
        let code = unsafe keychain_sqlite3_set_flag(handle, option, isOn ? 1 : 0)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "setting up")) }
    }

    /// Frees the pages in the cache that are not in use.
    func releaseCache() { _ = unsafe sqlite3_db_release_memory(handle) }

    func setLimit(_ limit: Int32, _ value: Int32) {
        unsafe sqlite3_limit(handle, limit, value)
    }

    /// Reads the first bytes of the file without a lock and without checks.
    ///
    /// Bytes after the end of the file are zero.
    ///
    /// Uses SQLite's own descriptor: opening and closing another one would drop the locks of this process.
    func firstBytes(_ count: Int) throws(KeychainFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var file: UnsafeMutablePointer<sqlite3_file>?
        var code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        // The file belongs to the connection, which outlives the call. The buffer has `count` bytes.
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

    /// Reserves bytes at the end of each page of a database that is still empty.
    func reserveBytesPerPage(_ count: Int32) throws(KeychainFailure) {
        var count = count
        let code = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
        guard code == SQLITE_OK else { throw health.record(SQLiteFailure(code: code, action: "reserving bytes")) }
    }
}

// MARK: - Settings of every connection to a store

extension SQLiteConnection {
    /// Applies the settings that neither read nor change the file.
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
        // The cache holds the interior pages of an index over a million items. With a short interval between checkpoints the -wal file is
        // reused from its start and does not grow, which halves the time of a flush. After a large value it is truncated to the size limit.
        try execute(
            """
            PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA secure_delete = ON;
            PRAGMA cache_size = -4096; PRAGMA wal_autocheckpoint = \(Self.framesPerCheckpoint); PRAGMA journal_size_limit = 8388608
            """)
    }

    /// Runs `body`, whose transaction frees pages without writing them.
    ///
    /// Their content stays in the file until they are used again.
    func withoutOverwritingFreedPages(_ body: () throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try execute("PRAGMA secure_delete = FAST")
        // Cannot fail: the same call succeeded when the connection was opened.
        defer { try? execute("PRAGMA secure_delete = ON") }
        try body()
    }

    /// Switches the database to WAL mode.
    ///
    /// Does nothing if it is in WAL mode.
    func switchToWAL() throws(KeychainFailure) {
        var mode = ""
        try query("PRAGMA journal_mode = WAL") { mode = $0.text(at: 0) }
        guard mode == "wal" else { throw KeychainFailure(.notAvailable, "SQLite cannot use a write-ahead log here", subject: .store) }
    }

    /// Sets when commits wait for the disk, and verifies the setting by reading it back.
    func apply(_ synchronous: SynchronousMode) throws(KeychainFailure) {
        try execute("PRAGMA synchronous = \(synchronous.rawValue)")
        guard try integer(of: "PRAGMA synchronous") == Int64(synchronous.rawValue) else {
            throw KeychainFailure(.notAvailable, "SQLite rejected the setting that makes writes durable", subject: .store)
        }
    }
}

/// When a commit waits for the disk.
///
/// The raw value is the value of SQLite's `synchronous` setting.
package enum SynchronousMode: Int, Sendable {
    /// Commits are not durable. For the planted fault of a test; no configuration selects this mode.
    case normal = 1
    /// Every commit is durable when it returns.
    case full = 2
}

/// A busy handler: SQLite calls it each time a lock is held by another connection, and it waits or gives up at a deadline.
///
/// SQLite's own timeout adds up the sleeps and not the elapsed time, so on a loaded machine it waits much longer than specified.
final class BusyHandler {
    private let limitNanoseconds: UInt64
    /// Nil until the first wait, from which the limit counts.
    private var deadline: Deadline?
    /// The turn that the connection waits for; nil while it does not begin to write.
    var turn: WriterTurn?

    init(limitMilliseconds: Int) {
        limitNanoseconds = UInt64(clamping: limitMilliseconds) * 1_000_000
    }

    func resetDeadline() { deadline = nil }

    func setDeadline(atNanoseconds time: UInt64) { deadline = Deadline(nanoseconds: time) }

    /// Sleeps and returns true, or returns false at the deadline.
    func wait(attempt: Int) -> Bool {
        let deadline = deadline ?? .after(nanoseconds: limitNanoseconds)
        self.deadline = deadline
        let remaining = deadline.remainingNanoseconds
        guard remaining > 0 else { return false }
        if let prompt = turn?.wait(attempt: attempt) {
            MonotonicClock.sleep(nanoseconds: min(prompt, remaining))
            return true
        }
        // Exponential backoff from 0.25 ms, the duration of a write, to 8 ms, with jitter.
        let step = UInt64(250_000) << UInt64(min(attempt, 5))
        MonotonicClock.sleep(nanoseconds: min(UInt64.random(in: step / 2...step), remaining))
        return true
    }
}
