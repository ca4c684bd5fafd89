// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// A result code of SQLite other than success, and the action that failed.
///
/// SQLite's own message is left out: it may quote stored values.
struct SQLiteFailure: Equatable {
    /// The extended code; its lowest byte is the primary one.
    let code: Int32
    let action: StaticString

    private var primaryCode: Int32 { code & 0xFF }

    static func == (left: SQLiteFailure, right: SQLiteFailure) -> Bool { left.code == right.code }

    /// A violated UNIQUE or CHECK constraint: the statement had no effect and the transaction continues.
    var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }

    var isFull: Bool { primaryCode == SQLITE_FULL }

    /// The file could not be written: the disk is full, or SQLITE_IOERR_WRITE, which is SQLITE_IOERR | (3<<8).
    var isWriteFailure: Bool { isFull || code == 10 | 3 << 8 }

    /// Another connection held a lock until the deadline.
    var isBusy: Bool { primaryCode == SQLITE_BUSY }

    var isReadOnly: Bool { primaryCode == SQLITE_READONLY }

    /// The stored bytes are not the bytes that were written.
    ///
    /// SQLITE_TOOBIG: the header of a row names a size beyond the limit, which no write exceeds. SQLITE_INTERRUPT: see `ScanLimit`.
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_TOOBIG, SQLITE_INTERRUPT].contains(primaryCode)
            || [Self.badChecksum, Self.damagedWAL, Self.wrongIndex].contains(code)
    }

    /// The file is not a SQLite database.
    var isNotADatabase: Bool { primaryCode == SQLITE_NOTADB }

    /// The connection's cache may differ from the disk, so the connection must be closed.
    var breaksConnection: Bool {
        switch primaryCode {
        case SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_MISUSE, SQLITE_INTERNAL: true
        default: code == Self.fileWasMoved
        }
    }

    /// SQLITE_READONLY_DBMOVED, which Swift does not import: it is SQLITE_READONLY | (4<<8).
    private static let fileWasMoved: Int32 = 8 | 4 << 8

    /// SQLITE_IOERR_SHMSIZE, the result if the -shm file cannot be extended: SQLITE_IOERR | (19<<8).
    private static let noRoomForSharedMemory: Int32 = 10 | 19 << 8

    /// SQLITE_IOERR_DATA, the result for a page with a wrong checksum: SQLITE_IOERR | (32<<8).
    private static let badChecksum: Int32 = 10 | 32 << 8

    /// KEYCHAIN_WAL_IS_DAMAGED, a result of the checksum VFS: SQLITE_IOERR | (0xC1<<8).
    private static let damagedWAL: Int32 = 10 | 0xC1 << 8

    /// KEYCHAIN_WAL_IS_LOST, a result of the checksum VFS: SQLITE_IOERR | (0xC2<<8).
    private static let lostWAL: Int32 = 10 | 0xC2 << 8

    /// KEYCHAIN_WAL_INDEX_IS_WRONG, a result of the checksum VFS: SQLITE_IOERR | (0xC3<<8).
    private static let wrongIndex: Int32 = 10 | 0xC3 << 8

    static func wrongIndex(_ action: StaticString) -> SQLiteFailure { SQLiteFailure(code: wrongIndex, action: action) }

    /// SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_PRIMARYKEY.
    private static let uniquenessCodes: [Int32] = [19 | 8 << 8, 19 | 6 << 8]

    /// The failure that callers receive.
    ///
    /// The statuses are those of section 1.9 of SecItem-behavior.md in KeychainServices.docc.
    var keychainFailure: KeychainFailure {
        switch primaryCode {
        case SQLITE_READONLY where code != Self.fileWasMoved:
            failure(.readOnly, "the store cannot be written: its file or directory is read-only")
        case SQLITE_CONSTRAINT where Self.uniquenessCodes.contains(code):
            failure(.duplicateItem, "an item with this primary key already exists")
        case SQLITE_NOMEM:
            failure(.allocate, "no memory for the store (\(action))")
        case SQLITE_IOERR where code == Self.noRoomForSharedMemory:
            failure(.notAvailable, "the disk is full, or it fails: the -shm file cannot be extended")
        case SQLITE_IOERR where code == Self.badChecksum:
            failure(
                .notAvailable, "the store is damaged: a page of its file has a wrong checksum (\(action))",
                isDamage: true, remedy: .repair)
        case SQLITE_IOERR where code == Self.damagedWAL:
            failure(
                .notAvailable, "the store is damaged: its latest changes are in its -wal file, after damaged bytes", isDamage: true,
                remedy: .repair)
        case SQLITE_IOERR where code == Self.lostWAL:
            KeychainFailure(
                .notAvailable,
                "the store's -wal file was removed or replaced while another program used it, and has its latest changes; nothing was changed",
                subject: .store, cause: .sqlite(code: code), requiresReopening: true, remedy: .closeElsewhere)
        case SQLITE_IOERR where code == Self.wrongIndex:
            failure(
                .notAvailable,
                "another program has altered the store's -shm file or its database, so its latest changes may be hidden (\(action)); "
                    + "nothing was changed",
                isDamage: true, remedy: .closeElsewhere)
        case SQLITE_IOERR:
            failure(.inputOutput, "the disk failed (\(action), SQLite code \(code))")
        case SQLITE_FULL:
            failure(.notAvailable, "the disk is full")
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            KeychainFailure(
                .notAvailable, "another process held the store's lock past the deadline (\(action))", subject: .store, cause: .busy)
        case SQLITE_CORRUPT:
            failure(
                .notAvailable,
                "the store is damaged: its file was cut off, or its structure is not intact (\(action))",
                isDamage: true)
        case SQLITE_TOOBIG:
            failure(.notAvailable, "the store is damaged (\(action), SQLite code \(code))", isDamage: true)
        case SQLITE_INTERRUPT:
            failure(
                .notAvailable, "the store is damaged: a table has more rows than fit into its file (\(action))",
                isDamage: true, remedy: .restoreCopy)
        case SQLITE_NOTADB:
            failure(.notAvailable, "the file is not a keychain store")
        case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH:
            failure(.notAvailable, "the store cannot be opened (\(action), SQLite code \(code))")
        case SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_INTERNAL, SQLITE_RANGE, SQLITE_MISMATCH:
            failure(.internal, "SQLite was used incorrectly (\(action), SQLite code \(code))")
        default:
            failure(.notAvailable, "the store cannot be used (\(action), SQLite code \(code))")
        }
    }

    private func failure(
        _ status: KeychainStatus, _ reason: String, isDamage: Bool = false, remedy: KeychainRemedy? = nil
    ) -> KeychainFailure {
        KeychainFailure(
            status, reason, subject: .store, cause: isFull ? .diskFull : .sqlite(code: code), isDamage: isDamage, remedy: remedy)
    }
}

/// The failures of a connection so far.
///
/// The connection and its statements share it, and one thread at a time uses it.
final class ConnectionHealth {
    /// Whether the connection must be closed.
    private(set) var isBroken = false
    /// The first failure of the current transaction other than a constraint violation.
    ///
    /// Such a transaction is not committed.
    private(set) var transactionFailure: SQLiteFailure?

    func resetForTransaction() {
        transactionFailure = nil
    }

    /// Marks the connection for closing because its file is no longer the store's, which SQLite does not notice.
    func markBroken() {
        isBroken = true
    }

    /// Records a failure and converts it for callers.
    func record(_ failure: SQLiteFailure) -> KeychainFailure {
        if failure.breaksConnection { isBroken = true }
        if !failure.isConstraint && transactionFailure == nil { transactionFailure = failure }
        return failure.keychainFailure
    }
}
