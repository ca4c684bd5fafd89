// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore

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
