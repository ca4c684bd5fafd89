// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// A connection with its transaction, as the closures of reads and writes use it.
final class StoreSession: @unchecked Sendable {
    // Unchecked: one thread at a time uses a session. That thread has checked it out of the store's pool, or is the admitted writer.
    let connection: SQLiteConnection
    let file: StoreFile
    /// The pool's generation when the session was opened.
    ///
    /// Sessions of earlier generations are closed instead of reused.
    let poolGeneration: UInt64
    /// The file, if it is read without locks.
    ///
    /// It must be unchanged after each read.
    let immutableFile: ImmutableFile?
    /// Whether unreachable changes in the -wal file are left out.
    let lacksChanges: Bool

    /// The newest format that is not refused.
    private let newestKnownFormat: Int64

    private var isInTransaction = false
    /// Whether the current write transaction records which items it changes: synchronization is on, and the changes are not its own.
    var recordsChanges = false
    /// The number of live versions that the current transaction has added to the ledger, less those that it has removed.
    var versionCountChange = 0
    /// Whether the current write has inserted an item, or given one another content.
    var storesItems = false
    /// The size to which the cache was enlarged; 0 if it has its first size.
    var cacheKibibytes = 0
    /// Whether a commit failed with an unknown outcome: its changes may or may not be durable.
    private(set) var outcomeIsUnknown = false
    /// Whether the -wal file may still have to be emptied after a replacement of the keybag.
    ///
    /// Only the writer uses this. True for a new writer, which then reads `scrub_pending`.
    var mayNeedScrub = true
    /// Whether this session has just replaced the keybag.
    ///
    /// Then the scrub waits briefly for readers.
    var waitsForScrub = false
    /// The state of the current write transaction; nil until the transaction changes something.
    var pendingState: PendingState?
    /// The state that this session has opened or sealed last, which most transactions need again.
    var openedState: (sealed: [UInt8], state: StoreState)?
    /// What the store's state is sealed and compared with.
    var stateGuard: StateGuard?
    /// Only the writer uses this.
    var pacing = GroupCommitPacing()
    /// Only the writer has one.
    let turn: WriterTurn?
    /// Only a writer that has written very much has one.
    var checkpoint: BackgroundCheckpoint?

    init(
        connection: SQLiteConnection, file: StoreFile, poolGeneration: UInt64, immutableFile: ImmutableFile?, turn: WriterTurn?,
        lacksChanges: Bool, newestKnownFormat: Int64
    ) {
        self.connection = connection
        self.file = file
        self.poolGeneration = poolGeneration
        self.immutableFile = immutableFile
        self.turn = turn
        self.lacksChanges = lacksChanges
        self.newestKnownFormat = newestKnownFormat
    }

    deinit {
        // A forked child has no such thread.
        guard !ForkDetection.isForkedChild else { return }
        // The connection that closes last empties the -wal file, and this one may do that.
        checkpoint?.close()
    }

    var health: ConnectionHealth { connection.health }

    /// The files that this session has open and that lost their names.
    ///
    /// A store that is read without locks counts as lost if it was changed.
    var lostFiles: LostFiles {
        if let immutableFile { return immutableFile.isUnchanged ? [] : .database }
        return connection.lostFiles
    }

    // MARK: Reading a consistent state

    func startReading() {
        connection.busyHandler.resetDeadline()
    }

    /// Begins a read transaction, unless one is open.
    ///
    /// All statements of one read see the state that the first one saw.
    func beginReadTransaction() throws(KeychainFailure) {
        guard !isInTransaction else { return }
        try connection.run(.begin)
        isInTransaction = true
    }

    func finishReading() {
        guard isInTransaction else { return }
        isInTransaction = false
        // The end of a read changes nothing. If it fails, `health` records that and the connection is closed.
        _ = try? connection.run(.commit)
    }

    // MARK: Writing

    func beginWriting(deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        connection.busyHandler.setDeadline(atNanoseconds: deadlineNanoseconds)
        health.resetForTransaction()
        pendingState = nil
        recordsChanges = false
        versionCountChange = 0
        turn?.yield()
        connection.busyHandler.turn = turn
        defer {
            connection.busyHandler.turn = nil
            turn?.finishWaiting()
        }
        try connection.run(.beginImmediate)
        isInTransaction = true
    }

    /// Makes the existing content and the names of the files durable, before the first write of a connection.
    ///
    /// A process that ended may have left content or a file name that it never flushed. A write must not be acknowledged before they are
    /// durable.
    func makeDurable(deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        try beginWriting(deadlineNanoseconds: deadlineNanoseconds)
        defer { rollBack() }
        connection.forgetOwnWrites()
        try connection.makeWALDurable(in: file.location.directory)
        recordOwnWrites()
    }

    func rollBack() {
        isInTransaction = false
        // After some failures SQLite has already rolled the transaction back.
        guard connection.isInTransaction else { return }
        // A failed rollback breaks the connection, and closing the connection rolls back.
        _ = try? connection.run(.rollback)
    }

    /// Commits.
    ///
    /// Throws `.inputOutput` with the cause `.outcomeUnknown` if the disk failed during the commit, or a file was lost.
    func commit() throws(KeychainFailure) {
        // A statement failed and the body ignored that, so its changes are incomplete.
        if let failure = health.transactionFailure {
            rollBack()
            throw failure.keychainFailure
        }
        do throws(KeychainFailure) {
            try connection.run(.commit)
            isInTransaction = false
        } catch {
            let isRolledBack = health.transactionFailure.map { $0.isFull || $0.isBusy || $0.isReadOnly || $0.isDamage } ?? false
            rollBack()
            if isRolledBack { throw error }
            outcomeIsUnknown = true
            health.markBroken()
            throw KeychainFailure(
                .inputOutput, "the disk failed during a commit; outcome unknown: read again, then repeat if needed", subject: .store,
                cause: .outcomeUnknown)
        }
        // Changes in a file without a name end with this process.
        guard !lostFiles.isEmpty else { return }
        let isRestored = restoreLostWAL()
        health.markBroken()
        guard !isRestored else { return }
        outcomeIsUnknown = true
        throw KeychainFailure(
            .inputOutput,
            "the store's files were removed or replaced during a commit; outcome unknown: read again, then repeat if needed",
            subject: .store, cause: .outcomeUnknown)
    }

    /// Creates the -wal file again, with its content, if it is the only file that was lost.
    ///
    /// Returns whether the committed changes are durable again. The session must not be used afterwards, except to close it: it still has
    /// the lost file open.
    func restoreLostWAL() -> Bool {
        guard immutableFile == nil, lostFiles == .wal else { return false }
        rollBack()
        health.resetForTransaction()
        do throws(KeychainFailure) {
            // A reader may hold the only copy, too.
            try connection.execute("PRAGMA query_only = OFF")
            try connection.run(.beginImmediate)
            defer { rollBack() }
            // Another process may have restored it, or replaced another file, before it released the lock.
            guard connection.lostFiles == .wal else { return false }
            return try connection.restoreLostWAL(in: file.location)
        } catch {
            return false
        }
    }
}

extension StoreSession {
    enum SavepointOutcome {
        /// The savepoint's changes are part of the transaction.
        case released
        /// The savepoint's changes were rolled back. The transaction continues.
        case rolledBack(KeychainFailure)
        /// The whole transaction was or must be rolled back.
        case transactionLost(KeychainFailure)
    }

    /// Runs one of several bodies of a transaction in a savepoint, which is rolled back if the body fails.
    func runInSavepoint(_ body: WriteRequest.Body?) -> SavepointOutcome {
        health.resetForTransaction()
        let stateBefore = pendingState
        do throws(KeychainFailure) {
            try connection.run(.savepoint)
            try body?(self)
            // A statement failed and the body ignored that.
            if let failure = health.transactionFailure { throw failure.keychainFailure }
            try connection.run(.releaseSavepoint)
            return .released
        } catch {
            let failure = error
            // Some failures make SQLite roll back the whole transaction. After others the connection's state is unreliable.
            guard !health.isBroken, connection.isInTransaction else { return .transactionLost(failure) }
            health.resetForTransaction()
            do throws(KeychainFailure) {
                try connection.run(.rollbackToSavepoint)
                try connection.run(.releaseSavepoint)
                pendingState = stateBefore
                return .rolledBack(failure)
            } catch {
                return .transactionLost(failure)
            }
        }
    }
}

// MARK: - The store's metadata

extension StoreSession {
    func storeID() throws(KeychainFailure) -> StoreID {
        var id: StoreID?
        try connection.query("SELECT store_id FROM meta WHERE number = 1") { id = $0.identifier(at: 0) }
        guard let id else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no identifier", subject: .store, isDamage: true)
        }
        return id
    }

    /// The format of the file in the current transaction.
    func format() throws(KeychainFailure) -> Int64 { try singleInteger(.formatVersion) ?? 0 }

    /// Throws if a newer version has changed the format since the connection was opened, and begins to record changes if synchronization is
    /// on.
    func checkFormat() throws(KeychainFailure) {
        let format = try format()
        guard format <= newestKnownFormat else {
            throw StoreOpener.newer(format, than: newestKnownFormat, path: file.location.path)
        }
        recordsChanges = format >= StoreSchema.synchronizingFormat
    }

    /// Returns the mark of the last replacement of the keybag after which the -wal file has not been emptied; nil if there is none.
    func scrubPending() throws(KeychainFailure) -> Int64? {
        let pending = try singleInteger(.scrubPending) ?? 0
        return pending == 0 ? nil : pending
    }

    /// Clears the mark, unless a later replacement of the keybag has set another.
    func clearScrubPending(_ pending: Int64) throws(KeychainFailure) {
        let statement = try connection.statement(.clearScrubPending)
        statement.bind(pending, at: 1)
        try statement.run()
    }

    /// Returns the lock epoch.
    ///
    /// Called for every use of a held key, and needs no transaction: a single row is consistent.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        guard let epoch = try singleInteger(.lockEpoch) else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no lock epoch", subject: .store, isDamage: true)
        }
        return LockEpoch(rawValue: epoch)
    }

    func setLockEpoch(_ epoch: LockEpoch) throws(KeychainFailure) {
        let statement = try connection.statement(.setLockEpoch)
        statement.bind(epoch.rawValue, at: 1)
        try statement.run()
    }
}
