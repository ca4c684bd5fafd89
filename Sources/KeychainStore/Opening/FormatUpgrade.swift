// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Makes a store of format 1 one whose pages have checksums.
///
/// Only while nobody else has the store open: a program that knows format 1 alone would go on and write pages without checksums.
/// Whatever interrupts it leaves a store of the one format or of the other.
struct FormatUpgrade {
    /// One that waits for nobody: the caller's deadline is that of the write which comes afterwards.
    let connection: SQLiteConnection
    /// Where the store is.
    let directory: String

    /// False when somebody else has the store open.
    func run() throws(KeychainFailure) -> Bool {
        try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        guard try unlessBusy(makeWALDurable), try unlessBusy(leaveLog) else { return false }
        // Nobody else reads or writes until the connection is closed.
        try connection.execute("BEGIN EXCLUSIVE")
        // Another process may have been faster.
        if try connection.integer(of: "PRAGMA user_version") == StoreSchema.oldestFormatVersion {
            // In format 1 these bytes mean nothing, so there is no harm in having written some of them.
            try connection.stampPages()
            try connection.execute("PRAGMA user_version = \(StoreSchema.formatVersion)")
        }
        try connection.execute("COMMIT")
        return true
    }

    /// Before it is brought into the database: whoever left it there may have died after a flush that failed.
    private func makeWALDurable() throws(KeychainFailure) -> Bool {
        try connection.execute("BEGIN IMMEDIATE")
        try connection.makeWALDurable(in: directory)
        try connection.execute("ROLLBACK")
        return true
    }

    /// Brings what is in the -wal file into the database, and removes it; SQLite does that for the last connection alone.
    private func leaveLog() throws(KeychainFailure) -> Bool {
        var mode = ""
        try connection.query("PRAGMA journal_mode = DELETE") { mode = $0.text(at: 0) }
        return mode == "delete"
    }

    /// False when somebody else is in the way.
    private func unlessBusy(_ step: () throws(KeychainFailure) -> Bool) throws(KeychainFailure) -> Bool {
        do throws(KeychainFailure) {
            return try step()
        } catch {
            guard connection.health.transactionFailure?.isBusy == true else { throw error }
            return false
        }
    }
}
