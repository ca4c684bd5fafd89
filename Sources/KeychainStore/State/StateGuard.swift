// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// What a store needs to detect changes by other programs: the cipher of its state, and its anchors.
///
/// The comparison of the rows with the state reads every row. It is skipped if no program has written to the files since they were compared or
/// written by a process that knew them to match: see `FileStamps`.
final class StateGuard: Sendable {
    let cipher: any StateCipher
    /// Authenticates rows; nil in tests that have none.
    let rowCipher: (any ItemCipher)?
    /// The keybag that a recovery key has opened, which a person has chosen; nil if the protector has opened the store.
    ///
    /// A recovery may continue a state that the anchors contradict. They still contradict it afterwards, until a person accepts it.
    let recoveredKeybag: [UInt8]?
    /// The anchors, one for each name of the store's path.
    ///
    /// Each of them binds: a store that is older than one of them has lost changes.
    let anchors: [AnchorFile]
    /// The database file that is protected.
    ///
    /// Another file in its place has to be compared first.
    let database: FileStatus.Identity
    /// The files when damage prevented the last comparison of the rows, or not all rows were found intact; nil if neither was so.
    ///
    /// Then rows may be missing, so a search without a result does not prove that there is no such row.
    var damagedFiles: FileStamps? {
        get { hasDamagedFiles.load(ordering: .relaxed) ? damaged.withLock { $0 } : nil }
        set {
            damaged.withLock { $0 = newValue }
            hasDamagedFiles.store(newValue != nil, ordering: .relaxed)
        }
    }
    private let damaged = Mutex<FileStamps?>(nil)
    /// Spares each search without a result the lock.
    private let hasDamagedFiles = Atomic(false)
    /// Whether the database's structure was found damaged, so that a write could destroy content that is sound.
    ///
    /// For instance, SQLite would write into a page that the list of free pages names wrongly.
    var isStructureDamaged: Bool {
        get { structureDamage.load(ordering: .relaxed) }
        set { structureDamage.store(newValue, ordering: .relaxed) }
    }
    private let structureDamage = Atomic(false)
    /// Whether the content was found to be what the keychain wrote last, so that no connection may find an older one.
    var refusesOlderContent: Bool {
        get { olderContentRefusal.load(ordering: .relaxed) }
        set { olderContentRefusal.store(newValue, ordering: .relaxed) }
    }
    private let olderContentRefusal = Atomic(false)
    /// The records that this process read or wrote last, in the order of `anchors`.
    private let known: LockedValue<[AnchorRecord]>

    init(
        cipher: any StateCipher, rowCipher: (any ItemCipher)? = nil, anchors: [AnchorFile], database: FileStatus.Identity,
        recoveredKeybag: [UInt8]? = nil
    ) {
        self.cipher = cipher
        self.recoveredKeybag = recoveredKeybag
        self.rowCipher = rowCipher
        self.database = database
        self.anchors = anchors
        known = LockedValue(anchors.map { $0.read() ?? AnchorRecord() })
    }

    /// Reads the anchors again and returns the records that they have.
    func reload() -> [AnchorRecord] {
        let records = anchors.map { $0.read() }
        known.withLock { known in
            for (index, record) in records.enumerated() { if let record { known[index] = record } }
        }
        return records.compactMap(\.self)
    }

    /// Returns the states that a connection must not have lost that is opened now.
    func statesOfNewConnection() -> [AnchorRecord.StateName] {
        guard refusesOlderContent else { return [] }
        _ = reload()
        return known.withLock { $0.compactMap(\.lastState) }
    }

    /// Returns the state whose rows were compared with it, if the files have these stamps since.
    ///
    /// Another process may have written the anchor since this one has read it.
    func verifiedStateID(of files: FileStamps) -> Identifier128? {
        if let known = known.withLock({ $0.first { $0.verified?.files == files } }) { return known.verified?.stateID }
        return reload().first { $0.verified?.files == files }?.verified?.stateID
    }

    /// Why this state must not be continued by another; nil if it may.
    ///
    /// Another program has put an older state back while this process had the store open. One write later, the anchors would not show that.
    func problem(ofNextStateAfter state: StoreState) -> StateProblem? {
        recoveredKeybag == nil ? contradiction(of: state) : nil
    }

    /// The change count of a state after this one.
    ///
    /// If a recovery continues a state that the anchors contradict, the count stays: a later count would end the contradiction, and the changes that
    /// are missing would never be reported.
    func changeCount(after state: StoreState) -> UInt64 {
        recoveredKeybag != nil && contradiction(of: state) != nil ? state.changeCount : state.changeCount + 1
    }

    /// Whether an anchor shows that the state is not the last one.
    func isContradicted(_ state: StoreState) -> Bool { contradiction(of: state) != nil }

    private func contradiction(of state: StoreState) -> StateProblem? {
        known.withLock { known in
            known.lazy.compactMap { $0.lastState.flatMap { $0.problem(of: state) } }.first
        }
    }

    /// Forgets the states in the anchors, because a person has accepted the content of the store.
    func forgetLastStates() {
        for (index, anchor) in anchors.enumerated() {
            let record = known.withLock { known in
                known[index].lastState = nil
                return known[index]
            }
            anchor.write(record)
        }
    }

    /// Records a commit, or another change of the files by a connection of this process.
    ///
    /// The two files are recorded independently: another process may write to the -wal file during a checkpoint. If the files matched their state
    /// before, and all changes are those of the connections that recorded them, they match the new state. So a change is recorded only if it began
    /// with the file that the last one has left. A file that another program has changed never has a recorded stamp again.
    ///
    /// - Parameters:
    ///   - writes: What the connection has written; nil if that is not known.
    ///   - state: The state before and after the commit; nil if the change has not changed the state.
    /// - Returns: Whether the files are known to match their state, as far as this change is concerned.
    @discardableResult
    func record(_ writes: OwnWrites?, of state: (original: StoreState, new: StoreState)?) -> Bool {
        if state == nil, let writes, writes.database == nil, writes.log == nil { return true }
        // Another process may have recorded its changes of the other file.
        let verified = reload().lazy.compactMap { record -> AnchorRecord.Verified? in
            guard let verified = record.verified, state == nil || state?.original.id == verified.stateID,
                let files = writes?.files(after: verified.files)
            else { return nil }
            return .init(stateID: state?.new.id ?? verified.stateID, files: files)
        }.first
        record(durable: state?.new, verified: verified)
        return verified != nil
    }

    /// Records what is known of the files now.
    ///
    /// - Parameters:
    ///   - state: A durable state; nil if the state is not known to be durable.
    ///   - verified: The state that matches the rows, with the files; nil to leave the earlier one, which is then out of date.
    func record(durable state: StoreState?, verified: AnchorRecord.Verified?) {
        for (index, anchor) in anchors.enumerated() {
            let (before, after) = known.withLock { known in
                let before = known[index]
                // A higher count belongs to changes that are missing in the store. A person has to accept that.
                if let state { known[index].lastState = lastState(after: before.lastState, state) }
                if let verified { known[index].verified = verified }
                return (before, known[index])
            }
            if before != after { anchor.write(after) }
        }
    }

    /// The last state to record after this one has become durable.
    private func lastState(after known: AnchorRecord.StateName?, _ state: StoreState) -> AnchorRecord.StateName {
        guard let known, state.changeCount <= known.changeCount else { return AnchorRecord.StateName(state) }
        // A recovery replaces the newest keybag by another, which is the newest one then, in a file that lacks changes.
        guard let recoveredKeybag, known.keybag == cipher.digest(ofKeybag: recoveredKeybag).leastSignificantWord else { return known }
        return AnchorRecord.StateName(changeCount: known.changeCount, id: known.id, keybag: state.keybagDigest.leastSignificantWord)
    }
}

/// What a connection has written into the files of a store.
struct OwnWrites {
    /// A file before the first and after the last write.
    struct Change {
        let before: FileStamps.Stamp
        let after: FileStamps.Stamp
    }

    /// Nil if nothing was written.
    let database: Change?
    let log: Change?

    /// Returns the files after these writes; nil unless the writes to each file began with the one in `before`.
    func files(after before: FileStamps) -> FileStamps? {
        guard let database = Self.stamp(after: database, of: before.database), let log = Self.stamp(after: log, of: before.log) else {
            return nil
        }
        return FileStamps(database: database, log: log)
    }

    private static func stamp(after change: Change?, of before: FileStamps.Stamp) -> FileStamps.Stamp? {
        guard let change else { return before }
        return change.before == before ? change.after : nil
    }
}

extension SQLiteItemStore {
    /// Runs `body`, which closes the connections of this store, and records that it emptied the -wal file.
    ///
    /// The last connection to a store does that. Whatever else has changed meanwhile is the work of others, who record it.
    func keepingVerified(_ stateGuard: StateGuard?, _ path: String, _ body: () -> Void) {
        guard let stateGuard, let location = try? FileLocation(path), let before = FileStamps(of: location),
            let stateID = stateGuard.verifiedStateID(of: before)
        else { return body() }
        body()
        guard let files = FileStamps(of: location), files != before, files.hasEmptyLog else { return }
        stateGuard.record(durable: nil, verified: .init(stateID: stateID, files: files))
    }
}
