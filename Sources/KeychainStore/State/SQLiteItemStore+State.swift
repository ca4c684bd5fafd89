// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// Detecting changes by other programs.
extension SQLiteItemStore {
    /// Returns the version of the content; the store must be protected (`protect`).
    package func contentVersion() throws(KeychainFailure) -> ContentVersion {
        try withReader { session throws(KeychainFailure) in
            guard let stateGuard else { throw KeychainFailure(.internal, "the state of the store is not known", subject: .store) }
            return ContentVersion(
                change: try session.storedState(stateGuard.cipher).id, lockEpoch: try session.lockEpoch(),
                syncEngine: try session.isSynchronizing() ? try session.setting(.engine) : nil)
        }
    }

    /// How much of a store is compared with its state when it is opened.
    package enum StateCheck: Sendable {
        /// The rows, the keybag, and the anchors.
        case content
        /// Only the keybag: the next opening compares the rest, and until then an older state may be continued.
        case keybag
        /// As `keybag`, with an older keybag that a person has accepted.
        case acceptedKeybag
        /// Nothing, because a person is asked.
        case nothing
    }

    /// Compares the store with its state and its anchors, and allows writes.
    ///
    /// - Parameters:
    ///   - cipher: The cipher of the state, from the store's keybag.
    ///   - rowCipher: The cipher of the rows.
    ///   - keybag: The copy of the keybag that is in use, which must be the one that was stored last.
    ///   - anchorPaths: The absolute paths of the anchors, in a directory other than the store's.
    ///   - check: What is compared.
    /// - Throws: A failure with `isDamage` and the cause `.unexpectedState` if the content is not what the keychain wrote last.
    package func protect(
        with cipher: any StateCipher, rowCipher: (any ItemCipher)? = nil, using keybag: StoredKeybag, anchorPaths: [String],
        checking check: StateCheck = .content
    ) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        let anchors = anchorPaths.map { AnchorFile($0, storeID: storeID, acceptsCopy: options.acceptsCopiedAnchor) }
        let database = try withReader { session in session.file.facts.identity }
        attach(
            StateGuard(
                cipher: cipher, rowCipher: rowCipher, anchors: anchors, database: database,
                recoveredKeybag: check == .keybag || check == .acceptedKeybag ? keybag.copies.first : nil))
        switch check {
        case .content:
            if let problem = try stateProblem(using: keybag, readingAllRows: false) { throw Self.failure(problem) }
            stateGuard?.refusesOlderContent = true
        case .keybag, .acceptedKeybag:
            if check == .keybag { guard try isStoredLast(keybag.copies) else { throw Self.failure(.keybagReplaced) } }
            try requireOwnStructure()
        case .nothing: break
        }
    }

    /// Throws unless the file can be written safely.
    private func requireOwnStructure() throws(KeychainFailure) {
        try withReader { session throws(KeychainFailure) in
            try session.beginReadTransaction()
            guard try session.hasOwnSchema() else { throw Self.failure(.schemaAltered) }
            guard try !session.integrityProblems().contains(where: \.preventsWriting) else { throw StoreSession.structureDamaged }
        }
    }

    /// Compares the store with its state and its anchors; nil if they match.
    ///
    /// `keybag` is the copy that is in use; nil if the store has to contain the one that was stored last. `readingAllRows: false` skips the
    /// comparison of the rows if the files are unchanged since the last one. Rows in damaged pages cannot be compared, so they are not reported
    /// here.
    package func stateProblem(
        using keybag: StoredKeybag? = nil, readingAllRows: Bool
    ) throws(KeychainFailure) -> StateProblem? {
        guard let stateGuard else { throw KeychainFailure(.internal, "the store was opened without the key of its state") }
        return try withReader { session throws(KeychainFailure) in
            try StateComparison(stateGuard, session).problem(using: keybag, readingAllRows: readingAllRows)
        }
    }

    /// Compares the rows of a copy of a store, and the copy of the keybag that is in use, with the state in it, without an anchor; nil if
    /// they match.
    package func stateProblem(in cipher: any StateCipher, using keybag: StoredKeybag) throws(KeychainFailure) -> StateProblem? {
        try withReader { session throws(KeychainFailure) in
            do throws(KeychainFailure) {
                return try StateComparison.problem(in: session, cipher, using: keybag)
            } catch {
                guard case .unexpectedState(let problem)? = error.cause else { throw error }
                return problem
            }
        }
    }

    /// Why an anchor cannot be used; nil if all can.
    package var anchorRefusal: String? { stateGuard?.anchors.lazy.compactMap(\.refusal).first }

    /// The change count of the stored state; nil if the state is not authentic.
    package func changeCount() throws(KeychainFailure) -> UInt64? {
        guard let cipher = stateGuard?.cipher else { return nil }
        return try changeCount(in: cipher)
    }

    /// The change count of the state that this cipher opens; nil if the state is not authentic.
    package func changeCount(in cipher: any StateCipher) throws(KeychainFailure) -> UInt64? {
        try withReader { session throws(KeychainFailure) in
            try session.beginReadTransaction()
            return try session.changeCount(in: cipher)
        }
    }

    /// Gives this copy a change count in a new series, because it is about to replace a store.
    ///
    /// - Parameters:
    ///   - cipher: The cipher of the state.
    ///   - known: The greatest change count that is known of the store to replace.
    /// - Returns: The new change count.
    /// - Throws: The errors of a write, and a failure with the cause `.unexpectedState` if the state of the copy is not authentic.
    package func beginSeries(with cipher: any StateCipher, replacing known: UInt64) throws(KeychainFailure) -> UInt64 {
        try ForkDetection.requireNotForked()
        let database = try withReader { session in session.file.facts.identity }
        attach(StateGuard(cipher: cipher, anchors: [], database: database))
        var changeCount: UInt64 = 0
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            var state = try session.storedState(cipher)
            state.changeCount = StoreState.changeCount(state.changeCount, replacing: known)
            session.replaceState(state)
            changeCount = state.changeCount
        }
        return changeCount
    }

    /// Whether one of these keybags is the one that was stored last, as far as the state and the anchors show; false if the state is not
    /// authentic.
    package func isStoredLast(_ copies: [[UInt8]]) throws(KeychainFailure) -> Bool {
        guard let stateGuard else { return false }
        return try withReader { session throws(KeychainFailure) in
            try session.beginReadTransaction()
            guard let state = try? session.storedState(stateGuard.cipher) else { return false }
            // An older file has an older state, which does not show a keybag that was stored after it.
            return copies.contains { stateGuard.cipher.digest(ofKeybag: $0) == state.keybagDigest }
                && stateGuard.reload().compactMap(\.lastState).allSatisfy {
                    $0.changeCount <= state.changeCount || $0.keybag == state.keybagDigest.leastSignificantWord
                }
        }
    }

    /// Accepts the present rows: computes the state again and stores it, with a change count in a new series.
    ///
    /// Call it only at a person's request. `keybag` is the copy that is in use. If it is not the one that was stored last, it replaces both
    /// copies.
    package func acceptContent(using keybag: StoredKeybag) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        guard let stateGuard, let bytes = keybag.copies.first else {
            throw KeychainFailure(.internal, "the store was opened without the key of its state")
        }
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            guard try !session.integrityProblems().contains(where: \.preventsWriting) else { throw StoreSession.structureDamaged }
            let (count, sum) = try session.scanRows(stateGuard.cipher)
            let stored = (try? session.storedState(stateGuard.cipher))?.changeCount ?? 0
            let known = stateGuard.reload().compactMap(\.lastState?.changeCount).max() ?? 0
            session.replaceState(
                StoreState(
                    changeCount: StoreState.changeCount(stored, replacing: known), id: .random(), rowCount: count, rowSum: sum,
                    keybagDigest: stateGuard.cipher.digest(ofKeybag: bytes)))
            try session.storeKeybag(bytes, generation: keybag.generation)
        }
        // The anchors may name a change count that no series exceeds.
        stateGuard.forgetLastStates()
        // The new state is the newest one: this reads the rows once more and records them.
        guard let problem = try stateProblem(readingAllRows: true) else { return }
        throw Self.failure(problem)
    }

    /// The failure of a store whose content is not what the keychain wrote last.
    package static func failure(_ problem: StateProblem) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the keychain is not as it was left: \(problem)", subject: .store, cause: .unexpectedState(problem),
            isDamage: true, remedy: problem == .schemaAltered ? .restoreCopy : .acceptContent)
    }
}

extension StoreSession {
    /// Throws damage if rows may be missing because damage prevents their comparison with the state.
    ///
    /// Otherwise a program that removes rows would only have to damage one page, and the removed items would be reported as missing. After a
    /// change, which may have replaced the damaged row, the rows are compared again.
    func requireComparedRows() throws(KeychainFailure) {
        guard try mayLackRows() else { return }
        throw KeychainFailure(
            .notAvailable, "no such item was found, but a part of the store is damaged, so items may be missing", subject: .store,
            cause: .damaged, isDamage: true, remedy: .saveReadable)
    }

    func mayLackRows() throws(KeychainFailure) -> Bool {
        guard let stateGuard, let damagedFiles = stateGuard.damagedFiles else { return false }
        let files = FileStamps(of: file.location) ?? .unknown
        guard pendingState != nil || files != damagedFiles || files == .unknown else { return true }
        let state = if let pendingState { pendingState.state } else { try storedState(stateGuard.cipher) }
        let isSound = try StateComparison(stateGuard, self).hasSoundRows(of: state)
        // A pending change may be rolled back.
        if pendingState == nil { stateGuard.damagedFiles = isSound ? nil : files }
        return !isSound
    }

    func stateReport(using keybag: StoredKeybag) throws(KeychainFailure) -> StateReport? {
        guard let stateGuard, let state = try? storedState(stateGuard.cipher) else { return nil }
        var isOfLastChange = false
        do throws(KeychainFailure) {
            if !lacksChanges, !stateGuard.isContradicted(state) {
                let problem = try StateComparison.problem(in: self, stateGuard.cipher, using: keybag)
                isOfLastChange = problem == nil || problem == .keybagGenerationAltered
            }
        } catch {
            guard error.isDamage else { throw error }
        }
        return StateReport(rowCount: state.rowCount, isOfLastChange: isOfLastChange)
    }
}

/// One comparison of a store with its state and its anchors.
private struct StateComparison {
    let stateGuard: StateGuard
    let session: StoreSession
    private var location: FileLocation { session.file.location }

    init(_ stateGuard: StateGuard, _ session: StoreSession) {
        self.stateGuard = stateGuard
        self.session = session
    }

    /// The store at the beginning of a comparison.
    private struct Content {
        /// Nil if the files cannot be examined.
        let files: FileStamps?
        /// The records of the anchors, the newest one first.
        let anchored: [AnchorRecord]
        let state: StoreState

        /// Whether the rows are known to be those of the state.
        var isVerified: Bool {
            guard let files else { return false }
            return anchored.contains { $0.verified == AnchorRecord.Verified(stateID: state.id, files: files) }
        }
    }

    private func content() throws(KeychainFailure) -> Content {
        // Before the transaction begins: stamps that are equal before and after it are those of the content it sees.
        let files = FileStamps(of: location)
        let anchored = stateGuard.reload().sorted { $0.lastState?.changeCount ?? 0 > $1.lastState?.changeCount ?? 0 }
        try session.beginReadTransaction()
        return Content(files: files, anchored: anchored, state: try session.storedState(stateGuard.cipher))
    }

    /// Begins a comparison that other processes do not disturb, if possible.
    ///
    /// A process that writes records its stamps only once the write is durable. It is faster to wait for it than to compare all rows.
    private func settledContent() throws(KeychainFailure) -> Content {
        var content = try content()
        // After the first time, a process may have released its lock and not recorded the write yet.
        for _ in 1...2 where !content.isVerified {
            session.finishReading()
            session.connection.waitForWriters(timeoutMilliseconds: Self.settlingTimeoutMilliseconds)
            content = try self.content()
        }
        return content
    }

    /// Longer than a flush takes.
    ///
    /// A process can hold the lock for any time, and reading does not depend on that.
    private static let settlingTimeoutMilliseconds: UInt64 = 500

    func problem(using keybag: StoredKeybag?, readingAllRows: Bool) throws(KeychainFailure) -> StateProblem? {
        let content: Content
        do throws(KeychainFailure) {
            content = try readingAllRows ? self.content() : settledContent()
        } catch {
            guard case .unexpectedState(let problem)? = error.cause else { throw error }
            return problem
        }
        let (before, anchored, state) = (content.files, content.anchored, content.state)
        let keybagProblem = try Self.keybagProblem(keybag, state, session, stateGuard.cipher)
        let isVerified = !readingAllRows && content.isVerified
        if !isVerified, try !session.hasOwnSchema() { return .schemaAltered }
        var rows = isVerified ? .same : try Self.compareRows(of: state, session, stateGuard.cipher)
        if !isVerified {
            // Whatever explains other stamps, such as a process that was killed after its commit, another program may have changed the files too.
            let problems = try session.integrityProblems()
            stateGuard.isStructureDamaged = problems.contains(where: \.preventsWriting)
            if case .same = rows, state.rowCount > 0, try !isSound(problems) { rows = .unreadable }
        }
        stateGuard.damagedFiles = rows.isUnreadable ? before ?? .unknown : nil
        let history = anchored.lazy.compactMap { historyProblem(state, $0, before) }.first
        if let history {
            // A restoration has replaced the file, and the anchors are those of the new one.
            guard session.lostFiles.isEmpty else { throw StoreSession.filesReplaced }
            try session.connection.requireNoHiddenChanges()
            return rows.isDifferent ? .mixed : history
        }
        if case .different(let problem) = rows { return problem }
        if let keybagProblem { return keybagProblem }
        if rows.isUnreadable || stateGuard.isStructureDamaged { return nil }
        guard let before, FileStamps(of: location) == before else { return nil }
        stateGuard.record(durable: before.hasEmptyLog ? state : nil, verified: .init(stateID: state.id, files: before))
        return nil
    }

    /// Whether the rows are those of the state, and all of them sound.
    func hasSoundRows(of state: StoreState) throws(KeychainFailure) -> Bool {
        guard case .same = try Self.compareRows(of: state, session, stateGuard.cipher) else { return false }
        guard state.rowCount > 0 else { return true }
        return try isSound(try session.integrityProblems())
    }

    /// Whether every row is authentic, and every index leads to it.
    ///
    /// The state adds up row tags, so it does not show whether a row still matches its tag, or can be found.
    private func isSound(_ problems: [StructuralProblem]) throws(KeychainFailure) -> Bool {
        guard let rowCipher = stateGuard.rowCipher else { return true }
        guard problems.allSatisfy({ $0 == .keybagCopiesDiffer }) else { return false }
        var areIntact = true
        _ = try session.forEachReadableRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
            areIntact = rowCipher.isIntact(row)
            return areIntact ? .proceed : .stop
        }
        return areIntact
    }

    private func historyProblem(
        _ state: StoreState, _ anchored: AnchorRecord, _ files: FileStamps?
    ) -> StateProblem? {
        guard let problem = anchored.lastState?.problem(of: state) else { return nil }
        guard case .rolledBack(let missing) = problem else { return problem }
        let isLogGone = anchored.verified.map { $0.files.database == files?.database && !$0.files.hasEmptyLog } ?? false
        return isLogGone && files?.hasEmptyLog == true ? .logRemoved(missingChangeCount: missing) : problem
    }

    /// Compares the rows and the keybag with the stored state.
    static func problem(
        in session: StoreSession, _ cipher: any StateCipher, using keybag: StoredKeybag
    ) throws(KeychainFailure) -> StateProblem? {
        try session.beginReadTransaction()
        guard try session.hasOwnSchema() else { return .schemaAltered }
        let state = try session.storedState(cipher)
        if case .different(let problem) = try compareRows(of: state, session, cipher) { return problem }
        return try keybagProblem(keybag, state, session, cipher)
    }

    private enum Rows {
        case same
        case different(StateProblem)
        /// Damage prevents the comparison, or a row or an index was altered. Reading the rows reports it, and so does a search without a
        /// result.
        case unreadable

        var isDifferent: Bool { if case .different = self { true } else { false } }
        var isUnreadable: Bool { if case .unreadable = self { true } else { false } }
    }

    private static func compareRows(
        of state: StoreState, _ session: StoreSession, _ cipher: any StateCipher
    ) throws(KeychainFailure) -> Rows {
        do throws(KeychainFailure) {
            let (count, sum) = try session.scanRows(cipher, expectedCount: state.rowCount)
            guard count == state.rowCount, sum == state.rowSum else {
                return .different(.rowsChanged(count: count, expectedCount: state.rowCount))
            }
            return .same
        } catch {
            guard error.isDamage, error.remedy != .closeElsewhere else { throw error }
            return .unreadable
        }
    }

    /// Compares the keybag in use with the one that was stored last; without `keybag`, whether the store contains that one.
    ///
    /// An older keybag may have a passcode that was given up. Damage of the other copy is no reason to use it.
    private static func keybagProblem(
        _ keybag: StoredKeybag?, _ state: StoreState, _ session: StoreSession, _ cipher: any StateCipher
    ) throws(KeychainFailure) -> StateProblem? {
        let copies = if let keybag { keybag.copies } else { try session.keybag().copies }
        guard copies.contains(where: { cipher.digest(ofKeybag: $0) == state.keybagDigest }) else { return .keybagReplaced }
        guard let keybag, try session.keybagGeneration() != keybag.generation else { return nil }
        return .keybagGenerationAltered
    }
}
