// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// A connection at work: what a read or a write is given.
final class StoreSession: @unchecked Sendable {
    // Unchecked: one thread uses a session at a time, the one that took it out of the store's pool or holds the writer's turn.
    let connection: SQLiteConnection
    let file: StoreFile
    /// Sessions of an older epoch than the store's are closed instead of being used again.
    let epoch: UInt64
    /// What is watched when the file is read without locks.
    let immutableFile: ImmutableFile?
    /// Whether the store's pages have no checksums.
    let isOldFormat: Bool

    /// The statement that stands on its end marker and so keeps the read transaction open.
    private var anchor: SQLiteStatement?
    private var isInTransaction = false
    /// A commit ended without an answer from the disk: what it wrote may be there or not.
    private(set) var outcomeIsUnknown = false
    /// Whether there may be a change of keys after which the -wal file is still to be emptied.
    ///
    /// Only the writer looks, first after it was opened.
    var mayNeedScrub = true
    /// Whether that change was made here just now: then readers are waited for, if only briefly.
    var waitsForScrub = false
    /// Only the writer keeps it.
    var pacing = GroupCommitPacing()

    init(connection: SQLiteConnection, file: StoreFile, epoch: UInt64, immutableFile: ImmutableFile?, isOldFormat: Bool) {
        self.connection = connection
        self.file = file
        self.epoch = epoch
        self.immutableFile = immutableFile
        self.isOldFormat = isOldFormat
    }

    var health: ConnectionHealth { connection.health }

    /// Whether the path still leads to the file the connection has open.
    var pathStillMatchesFile: Bool {
        if let immutableFile { return immutableFile.isUnchanged }
        return (try? FileStatus(of: file.location.path))?.identity == file.facts.identity
    }

    // MARK: Reading one state

    func startReading() {
        connection.busyHandler.resetDeadline()
    }

    /// Makes the statements that follow see the state that the first one saw.
    ///
    /// A read of one short search needs no transaction of its own: its statement, left on its last row, holds the state.
    /// Only a read that goes on begins one, and joins that state because the statement is still active.
    func beginReadTransaction() throws(KeychainFailure) {
        guard !isInTransaction else { return }
        try connection.run(.begin)
        isInTransaction = true
        anchor?.reset()
        anchor = nil
    }

    /// Whether a search that comes now may hold the state by itself.
    var canRetainSnapshot: Bool { anchor == nil && !isInTransaction }

    func retainSnapshot(with statement: SQLiteStatement) {
        anchor = statement
    }

    func finishReading() {
        anchor?.reset()
        anchor = nil
        guard isInTransaction else { return }
        isInTransaction = false
        // The end of a read changes nothing. Should it fail, `health` has taken note and the connection is closed.
        _ = try? connection.run(.commit)
    }

    // MARK: Writing

    func beginWriting(deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        connection.busyHandler.setDeadline(atNanoseconds: deadlineNanoseconds)
        health.resetForTransaction()
        try connection.run(.beginImmediate)
        isInTransaction = true
    }

    /// Before the first write of a connection: what others have left may only look durable, be it content or a name.
    ///
    /// Nothing is acknowledged in a file that could still lose its name.
    func makeDurable(deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        try beginWriting(deadlineNanoseconds: deadlineNanoseconds)
        defer { undo() }
        try connection.makeWALDurable(in: file.location.directory)
    }

    func undo() {
        isInTransaction = false
        // SQLite ends the transaction by itself after some failures; then there is nothing left to undo.
        guard connection.isInTransaction else { return }
        // A failed rollback breaks the connection, and closing it undoes what is open.
        _ = try? connection.run(.rollback)
    }

    /// Commits.
    ///
    /// What cannot be known is said: errSecIO when the disk failed while committing.
    func commit() throws(KeychainFailure) {
        // A statement failed and the body went on regardless: what it wrote is not whole.
        if let failure = health.transactionFailure {
            undo()
            throw failure.keychainFailure
        }
        do throws(KeychainFailure) {
            try connection.run(.commit)
            isInTransaction = false
        } catch {
            let isUndone = health.transactionFailure.map { $0.isFull || $0.isBusy || $0.isReadOnly || $0.isDamage } ?? false
            undo()
            if isUndone { throw error }
            outcomeIsUnknown = true
            health.markBroken()
            throw KeychainFailure(
                .inputOutput, "the disk failed while the change was being made durable; outcome unknown: read again, then repeat if needed")
        }
    }
}

extension StoreSession {
    enum SavepointOutcome {
        case kept
        /// The transaction is as it was before.
        case undone(KeychainFailure)
        /// Nothing of the transaction can be kept.
        case transactionLost(KeychainFailure)
    }

    /// Runs one body of several within a transaction: what fails is undone alone.
    func runInSavepoint(_ body: WriteRequest.Body?) -> SavepointOutcome {
        health.resetForTransaction()
        do throws(KeychainFailure) {
            try connection.run(.savepoint)
            try body?(self)
            // A statement failed and the body went on regardless.
            if let failure = health.transactionFailure { throw failure.keychainFailure }
            try connection.run(.releaseSavepoint)
            return .kept
        } catch {
            let failure = error
            // SQLite undoes a whole transaction by itself after some failures, and after others its memory is not to be trusted.
            guard !health.isBroken, connection.isInTransaction else { return .transactionLost(failure) }
            health.resetForTransaction()
            do throws(KeychainFailure) {
                try connection.run(.rollbackToSavepoint)
                try connection.run(.releaseSavepoint)
                return .undone(failure)
            } catch {
                return .transactionLost(failure)
            }
        }
    }
}

/// What a store knows about itself.
extension StoreSession {
    func storeID() throws(KeychainFailure) -> StoreID {
        var id: StoreID?
        try connection.query("SELECT store_id FROM meta WHERE number = 1") { id = $0.identifier(at: 0) }
        guard let id else { throw KeychainFailure(.notAvailable, "the store is damaged: it has no identifier", isDamage: true) }
        return id
    }

    /// The format may have changed since the connection was opened.
    func checkFormat() throws(KeychainFailure) {
        let version = try singleInteger(.formatVersion) ?? 0
        guard version <= StoreSchema.formatVersion else { throw StoreOpener.newer(version) }
    }

    /// Names the change of keys after which the -wal file is still to be emptied; nil when there is none.
    func scrubPending() throws(KeychainFailure) -> Int64? {
        let pending = try singleInteger(.scrubPending) ?? 0
        return pending == 0 ? nil : pending
    }

    /// Only if no later change asked for another one.
    func clearScrubPending(_ pending: Int64) throws(KeychainFailure) {
        let statement = try connection.statement(.clearScrubPending)
        statement.bind(pending, at: 1)
        try statement.run()
    }

    /// One row of one statement is consistent without a transaction, and every use of a held key asks for it.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        guard let epoch = try singleInteger(.lockEpoch) else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no count of its locks", isDamage: true)
        }
        return LockEpoch(rawValue: epoch)
    }

    func setLockEpoch(_ epoch: LockEpoch) throws(KeychainFailure) {
        let statement = try connection.statement(.setLockEpoch)
        statement.bind(epoch.rawValue, at: 1)
        try statement.run()
    }
}
