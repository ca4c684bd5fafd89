// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// Discarding damaged records of changes.
///
/// Every write of a synchronizable item changes `sync_changes`. If a page of that table is damaged, all those writes would fail until a person
/// repairs the keychain. The records can be lost without losing a change: the ledger then notes that all rows have to be compared with it.
extension SQLiteItemStore {
    /// Empties the table of records if it is damaged and nothing else is.
    ///
    /// Returns whether that was so. Best effort: otherwise the caller reports the damage.
    func hasDiscardedDamagedRecords() -> Bool {
        do throws(KeychainFailure) {
            guard try isSynchronizing(), try !canReadRecords() else { return false }
            try discardRecords()
            if let stateGuard, stateGuard.isStructureDamaged {
                stateGuard.isStructureDamaged = try integrityProblems().contains(where: \.preventsWriting)
            }
            return true
        } catch {
            return false
        }
    }

    private func canReadRecords() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in
            do throws(KeychainFailure) {
                _ = try session.connection.integer(of: "SELECT sum(length(item) + kind) FROM sync_changes")
                return true
            } catch {
                guard error.isDamage else { throw error }
                return false
            }
        }
    }

    /// Uses a connection of its own: the one that met the damage is closed.
    private func discardRecords() throws(KeychainFailure) {
        let deadline = writeDeadline()
        let session = try opener.openSession(.writer, poolGeneration: 0, deadlineNanoseconds: deadline)
        session.stateGuard = stateGuard
        try session.makeDurable(deadlineNanoseconds: deadline)
        try session.beginWriting(deadlineNanoseconds: deadline)
        do throws(KeychainFailure) {
            try session.checkFormat()
            session.connection.forgetOwnWrites()
            try session.discardRecords()
            try session.commit()
            session.recordOwnWrites()
        } catch {
            session.rollBack()
            throw error
        }
        try session.removeUnusedPages()
    }
}

extension StoreSession {
    fileprivate func discardRecords() throws(KeychainFailure) {
        // Emptying reads damaged pages as empty ones, so no other table may have any.
        var tables: [String] = []
        try connection.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sync_changes'") {
            tables.append($0.text(at: 0))
        }
        for table in tables { guard try isSound("(\"\(table)\")") else { throw Self.structureDamaged } }
        // Without a condition, SQLite empties the table page by page and looks at no record.
        try connection.readingDamagedPagesAsEmpty { () throws(KeychainFailure) in try connection.execute("DELETE FROM sync_changes") }
        try connection.execute(SyncSchema.noteOfLackOfRecords)
    }

    /// Rebuilds the file if it has pages that belong to nothing: those below a damaged page in the middle of a large table of records.
    fileprivate func removeUnusedPages() throws(KeychainFailure) {
        guard try !isSound() else { return }
        // VACUUM attaches a temporary database.
        connection.setLimit(SQLITE_LIMIT_ATTACHED, 1)
        defer { connection.setLimit(SQLITE_LIMIT_ATTACHED, 0) }
        try connection.execute("VACUUM")
    }

    private func isSound(_ argument: String = "") throws(KeychainFailure) -> Bool {
        var found: [String] = []
        try connection.query("PRAGMA integrity_check\(argument)") { found.append($0.text(at: 0)) }
        return found == ["ok"]
    }
}
