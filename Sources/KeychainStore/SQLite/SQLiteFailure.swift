// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// A result code of SQLite that is not success, and what was being done.
///
/// SQLite's own message is left out: it may quote what is stored.
struct SQLiteFailure: Equatable {
    /// The extended code; its lowest byte is the primary one.
    let code: Int32
    let action: StaticString

    private var primaryCode: Int32 { code & 0xFF }

    static func == (left: SQLiteFailure, right: SQLiteFailure) -> Bool { left.code == right.code }

    /// A broken promise of uniqueness or of a check: the statement did nothing and the transaction goes on.
    var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }

    var isFull: Bool { primaryCode == SQLITE_FULL }

    /// What was written to could not be: there is no room, or SQLITE_IOERR_WRITE, which is SQLITE_IOERR | (3<<8).
    var isWriteFailure: Bool { isFull || code == 10 | 3 << 8 }

    /// Another connection was in the way until the deadline.
    var isBusy: Bool { primaryCode == SQLITE_BUSY }

    var isReadOnly: Bool { primaryCode == SQLITE_READONLY }

    /// What is stored is not what was written.
    var isDamage: Bool { primaryCode == SQLITE_CORRUPT || code == Self.badChecksum || code == Self.damagedLog }

    /// The file holds no database of SQLite's at all.
    var isNotADatabase: Bool { primaryCode == SQLITE_NOTADB }

    /// What the connection has in memory may differ from the disk: it must be closed.
    var breaksConnection: Bool {
        switch primaryCode {
        case SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_MISUSE, SQLITE_INTERNAL: true
        default: code == Self.fileWasMoved
        }
    }

    /// SQLITE_READONLY_DBMOVED, which Swift does not import: it is SQLITE_READONLY | (4<<8).
    private static let fileWasMoved: Int32 = 8 | 4 << 8

    /// SQLITE_IOERR_SHMSIZE: SQLITE_IOERR | (19<<8).
    ///
    /// SQLite gives it when the -shm file cannot be made longer.
    private static let noRoomForSharedMemory: Int32 = 10 | 19 << 8

    /// SQLITE_IOERR_DATA: SQLITE_IOERR | (32<<8).
    ///
    /// The page checksums give it. The disk did answer, but not with what was written.
    private static let badChecksum: Int32 = 10 | 32 << 8

    /// KEYCHAIN_WAL_IS_DAMAGED, which the layer below SQLite gives: SQLITE_IOERR | (0xC1<<8).
    private static let damagedLog: Int32 = 10 | 0xC1 << 8

    /// SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_PRIMARYKEY.
    private static let uniquenessCodes: [Int32] = [19 | 8 << 8, 19 | 6 << 8]

    /// What callers see.
    ///
    /// The pairs are those of section 1.9 of SecItem-behavior.md in KeychainServices.docc.
    var keychainFailure: KeychainFailure {
        switch primaryCode {
        case SQLITE_READONLY where code != Self.fileWasMoved:
            KeychainFailure(.readOnly, "the store cannot be written: its file or directory is read-only")
        case SQLITE_CONSTRAINT where Self.uniquenessCodes.contains(code):
            KeychainFailure(.duplicateItem, "an item with this primary key is there already")
        case SQLITE_NOMEM:
            KeychainFailure(.allocate, "no memory for the store (\(action))")
        case SQLITE_IOERR where code == Self.noRoomForSharedMemory:
            KeychainFailure(.notAvailable, "the disk is full, or it fails: the -shm file cannot be made longer; nothing was changed")
        case SQLITE_IOERR where code == Self.badChecksum:
            KeychainFailure(
                .notAvailable, "the store is damaged: a page of its file is not what was written (\(action)); nothing was changed",
                isDamage: true, remedy: .repair)
        case SQLITE_IOERR where code == Self.damagedLog:
            KeychainFailure(
                .notAvailable,
                "the store is damaged: changes stored last are in its -wal file, behind a place that is not what was written",
                isDamage: true, remedy: .repair)
        case SQLITE_IOERR:
            KeychainFailure(.inputOutput, "the disk answered with an error (\(action), SQLite code \(code))")
        case SQLITE_FULL:
            KeychainFailure(.notAvailable, "the disk is full; nothing was changed")
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            KeychainFailure(.notAvailable, "another process held the store's lock past the deadline (\(action))")
        case SQLITE_CORRUPT:
            KeychainFailure(.notAvailable, "the store is damaged (\(action), SQLite code \(code)); nothing was changed", isDamage: true)
        case SQLITE_NOTADB:
            KeychainFailure(.notAvailable, "the file is not a keychain store")
        case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH:
            KeychainFailure(.notAvailable, "the store cannot be opened (\(action), SQLite code \(code))")
        case SQLITE_TOOBIG:
            KeychainFailure(.parameter, "a value is larger than the store takes")
        case SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_INTERNAL, SQLITE_RANGE, SQLITE_MISMATCH:
            KeychainFailure(.internal, "the store was used wrongly (\(action), SQLite code \(code))")
        default:
            KeychainFailure(.notAvailable, "the store cannot be used (\(action), SQLite code \(code))")
        }
    }
}

/// What went wrong on a connection so far.
///
/// Shared by the connection and its statements, used by one thread at a time.
final class ConnectionHealth {
    /// The connection must not be used again.
    private(set) var isBroken = false
    /// The first failure of the running transaction that leaves it in doubt: such a transaction is not committed.
    private(set) var transactionFailure: SQLiteFailure?

    func resetForTransaction() {
        transactionFailure = nil
    }

    /// For a reason that SQLite does not know: its file is no longer the one that is meant.
    func markBroken() {
        isBroken = true
    }

    /// Takes note of a failure and gives it back in the caller's terms.
    func record(_ failure: SQLiteFailure) -> KeychainFailure {
        if failure.breaksConnection { isBroken = true }
        if !failure.isConstraint && transactionFailure == nil { transactionFailure = failure }
        return failure.keychainFailure
    }
}
