// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// The state of the store in a write transaction.
///
/// Each change of a row changes the state in memory. Shortly before the commit, the state is sealed and stored in the same transaction.
extension StoreSession {
    /// The state that a transaction changes.
    struct PendingState {
        let original: StoreState
        var state: StoreState
    }

    /// Adds a row with this tag to the state of the transaction.
    func noteInsertion(tag: [UInt8]) throws(KeychainFailure) {
        try changeState { state, cipher in state.insertRow(cipher.element(ofRowTag: tag)) }
    }

    /// Removes a row with this tag from the state of the transaction.
    func noteRemoval(tag: [UInt8]) throws(KeychainFailure) {
        try changeState { state, cipher in state.removeRow(cipher.element(ofRowTag: tag)) }
    }

    func noteReplacement(of old: [UInt8], by new: [UInt8]) throws(KeychainFailure) {
        try changeState { state, cipher in
            state.removeRow(cipher.element(ofRowTag: old))
            state.insertRow(cipher.element(ofRowTag: new))
        }
    }

    func noteKeybag(_ bytes: [UInt8]) throws(KeychainFailure) {
        try changeState { state, cipher in state.keybagDigest = cipher.digest(ofKeybag: bytes) }
    }

    /// Counts a change that concerns neither rows nor the keybag.
    func noteOtherChange() throws(KeychainFailure) {
        try changeState { _, _ in }
    }

    /// The failure of a write to a database whose structure is damaged, or unknown because of a damaged page.
    static var structureDamaged: KeychainFailure {
        KeychainFailure(
            .notAvailable, "the store's file is damaged, so nothing can be written to it",
            subject: .store, cause: .damaged, isDamage: true, remedy: .saveReadable)
    }

    /// The failure of a call whose store was replaced while it was open; the caller opens the new one.
    static var filesReplaced: KeychainFailure {
        KeychainFailure(
            .notAvailable, "the store's files were removed or replaced while it was open", subject: .store,
            requiresReopening: true)
    }

    private func changeState(_ change: (inout StoreState, any StateCipher) -> Void) throws(KeychainFailure) {
        guard let cipher = stateGuard?.cipher else {
            // Only tests create a store without a state.
            guard try sealedState() == nil else {
                throw KeychainFailure(.internal, "a store was opened without the key of its state, and cannot be changed")
            }
            return
        }
        var pending: PendingState
        if let pendingState {
            pending = pendingState
        } else {
            guard stateGuard?.isStructureDamaged != true else { throw Self.structureDamaged }
            let stored = try storedState(cipher)
            if let problem = stateGuard?.problem(ofNextStateAfter: stored) {
                // A restoration has replaced the file, and the anchors are those of the new one.
                guard lostFiles.isEmpty else { throw StoreSession.filesReplaced }
                try connection.requireNoHiddenChanges()
                throw SQLiteItemStore.failure(problem)
            }
            pending = PendingState(original: stored, state: stored)
        }
        change(&pending.state, cipher)
        pendingState = pending
    }

    /// Stores the state of the transaction, if it was changed.
    ///
    /// Returns the state before and the new one.
    func storePendingState() throws(KeychainFailure) -> (original: StoreState, new: StoreState)? {
        guard let pendingState, let stateGuard else { return nil }
        var state = pendingState.state
        state.changeCount = stateGuard.changeCount(after: state)
        state.id = .random()
        let sealed = stateGuard.cipher.seal(state)
        let statement = try connection.statement(.setState)
        try statement.withBound([SQLiteStatement.Blob(index: 1, bytes: sealed)]) { () throws(KeychainFailure) in try statement.run() }
        openedState = (sealed, state)
        return (pendingState.original, state)
    }

    /// Replaces the state of the transaction, at a person's request.
    func replaceState(_ state: StoreState) {
        pendingState = PendingState(original: state, state: state)
    }

    /// Returns the stored state.
    ///
    /// Throws a failure with the cause `.unexpectedState(.unauthentic)` if it is missing or was altered.
    func storedState(_ cipher: any StateCipher) throws(KeychainFailure) -> StoreState {
        let sealed = try sealedState() ?? []
        if let openedState, openedState.sealed == sealed { return openedState.state }
        guard let state = cipher.open(sealed) else { throw SQLiteItemStore.failure(.unauthentic) }
        openedState = (sealed, state)
        return state
    }

    /// Returns the change count of the stored state; nil if the state is not authentic.
    func changeCount(in cipher: any StateCipher) throws(KeychainFailure) -> UInt64? {
        do throws(KeychainFailure) {
            return try storedState(cipher).changeCount
        } catch {
            guard case .unexpectedState? = error.cause else { throw error }
            return nil
        }
    }

    /// Throws if the store has lost one of these states.
    ///
    /// They were recorded before the session was opened, so the store contains them or later ones.
    func requireContent(notOlderThan states: [AnchorRecord.StateName], _ cipher: any StateCipher) throws(KeychainFailure) {
        guard !states.isEmpty else { return }
        try beginReadTransaction()
        defer { finishReading() }
        let state = try storedState(cipher)
        guard let problem = states.lazy.compactMap({ $0.problem(of: state) }).first else { return }
        guard lostFiles.isEmpty else { throw StoreSession.filesReplaced }
        try connection.requireNoHiddenChanges()
        throw SQLiteItemStore.failure(problem)
    }

    /// SQLITE_ERROR, the code of a statement that names a missing column.
    private static let noSuchColumn: Int32 = 1

    /// Returns nil for a store that was created without a state.
    private func sealedState() throws(KeychainFailure) -> [UInt8]? {
        let statement: SQLiteStatement
        do throws(KeychainFailure) {
            statement = try connection.statement(.state)
        } catch {
            guard case .sqlite(code: Self.noSuchColumn)? = error.cause else { throw error }
            throw StoreOpener.unsupported(file.location.path, "has a format from before the first release")
        }
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(at: 0) else { return nil }
        return statement.bytes(at: 0)
    }

    /// Whether the database has exactly the tables and indexes of its format.
    ///
    /// A trigger, a generated column, or another constraint can make SQLite drop a change without an error.
    func hasOwnSchema() throws(KeychainFailure) -> Bool {
        let expected = StoreSchema.objects(ofFormat: try format())
        var found: Set<String> = []
        var rootPages: Set<Int64> = []
        var isKnown = true
        try connection.query("SELECT type, name, tbl_name, coalesce(sql, ''), rootpage FROM sqlite_schema") { row in
            let object = (0..<4).map { row.text(at: $0) }.joined(separator: "\0")
            // Two tables with one root page would be one table under two names.
            isKnown = isKnown && rootPages.insert(row.integer(at: 4)).inserted
            guard !StoreSchema.statistics.contains(object) else { return }
            isKnown = isKnown && expected.contains(object)
            found.insert(object)
        }
        return isKnown && found.count == expected.count
    }

    /// Counts the rows and adds up the elements of their tags, in one scan.
    ///
    /// With `expectedCount`, throws damage if there are many more rows: then pages of the table probably point at each other.
    func scanRows(
        _ cipher: any StateCipher, expectedCount: UInt64? = nil
    ) throws(KeychainFailure) -> (count: UInt64, sum: UInt256) {
        try beginReadTransaction()
        let statement = try connection.statement(.allTags)
        defer { statement.reset() }
        var count: UInt64 = 0
        var sum = UInt256()
        while try statement.step() {
            count += 1
            // Without the margin, the failure could not name the number of rows that another program has added.
            if let expectedCount, count / 2 > expectedCount, count - expectedCount > Self.unexpectedRowLimit {
                throw connection.health.record(SQLiteFailure(code: SQLITE_INTERRUPT, action: "comparing the rows"))
            }
            sum = sum &+ cipher.element(ofRowTag: statement.bytes(at: 0))
        }
        return (count, sum)
    }

    private static let unexpectedRowLimit: UInt64 = 100_000

    /// Records in the anchors what this connection has written since `forgetOwnWrites`.
    ///
    /// `state` is what a commit has changed the state from and to; nil if it is unchanged. Returns whether the files are known to match their
    /// state, as far as these writes are concerned.
    @discardableResult
    func recordOwnWrites(of state: (original: StoreState, new: StoreState)? = nil) -> Bool {
        defer { connection.forgetOwnWrites() }
        return stateGuard?.record(connection.ownWrites, of: state) ?? false
    }
}
