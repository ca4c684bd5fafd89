// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore

extension SQLiteConnection {
    /// Copies the whole database as it is at one moment into that of another connection, in the place of what is there.
    ///
    /// All pages go in one step, within one read: others may write meanwhile, and the copy need not begin again.
    func copyDatabase(to other: SQLiteConnection) throws(KeychainFailure) {
        // Both connections outlive the copy, and the one thread here uses them for nothing else until it is finished.
        guard let copy = unsafe sqlite3_backup_init(other.handle, "main", handle, "main") else {
            throw other.health.record(SQLiteFailure(code: SQLITE_ERROR, action: "copying the store"))
        }
        var attempt = 0
        var code: Int32
        repeat {
            code = unsafe sqlite3_backup_step(copy, -1)
            attempt += 1
        } while (code == SQLITE_BUSY || code == SQLITE_LOCKED) && busyWait.wait(attempt: attempt)
        let finished = unsafe sqlite3_backup_finish(copy)
        guard code == SQLITE_DONE, finished == SQLITE_OK else {
            let failure = SQLiteFailure(code: code == SQLITE_DONE ? finished : code, action: "copying the store")
            // Only the copy is written.
            guard !failure.isOfWriting else { throw failure.keychainFailure.advising(.writeElsewhere) }
            throw health.record(failure)
        }
    }
}
