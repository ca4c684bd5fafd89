// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem
internal import Synchronization

/// A store in one SQLite file, shared by any number of threads and processes.
///
/// Reads run side by side on a few connections; writes run one at a time on one more, and those that come at once share one flush.
/// Every wait ends at a deadline.
/// Should the file be replaced or removed, writes notice before they commit and reads within a second.
package final class SQLiteItemStore: ItemStore {
    package let storeID: StoreID
    private let opening: StoreOpener
    let turns = WriterQueue()
    private let pool: Mutex<ConnectionPool>

    var options: StoreOptions { opening.options }

    /// Opens an existing store.
    ///
    /// Never creates one.
    ///
    /// Throws `.notAvailable` for a file that is absent, foreign, newer, damaged or not private, and says which.
    package init(openingAt path: String, options: StoreOptions = StoreOptions()) throws(KeychainFailure) {
        try CurrentProcess.requireNotForked()
        opening = StoreOpener(path: path, options: options)
        try opening.examine()
        let session = try opening.openSession(.reader, epoch: 0, deadlineNanoseconds: nil)
        storeID = try session.storeID()
        let scrubPending = try session.scrubPending() != nil
        pool = Mutex(ConnectionPool(first: session))
        guard scrubPending else { return }
        // Who cannot now, leaves it to a later write or opening.
        try? withWriter { session in finishScrub(on: session) }
    }

    /// Closes every connection as soon as its call has ended.
    ///
    /// Later calls are refused.
    package func close() {
        guard !CurrentProcess.isForked else { return }
        pool.withLock { $0.isClosed = true }
        drop()
    }

    func refuseForkedChild() throws(KeychainFailure) {
        guard !CurrentProcess.isForked else { throw CurrentProcess.forkedChildFailure }
    }

    // MARK: Reading

    package func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withReader { session throws(KeychainFailure) in try body(session) }
    }

    /// The keybag as stored, with both its copies.
    package func keybag() throws(KeychainFailure) -> StoredKeybag {
        try withReader { session throws(KeychainFailure) in try session.keybag() }
    }

    /// Whether the -wal file may still hold what a change of keys was to remove; a later opening finishes that.
    package func isScrubPending() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.scrubPending() != nil }
    }

    /// One of `integrityProblems`, which a replacement of the keybag repairs.
    package static let differingKeybagCopies = "the two copies of the keybag differ"

    /// What of a store's files is not what was written, also of one that is too damaged to be opened.
    package static func damage(at path: String, options: StoreOptions = StoreOptions()) throws(KeychainFailure) -> FileDamage {
        try CurrentProcess.requireNotForked()
        return try StoreOpener(path: path, options: options).damage()
    }

    /// What is wrong with the file itself, a line each; empty when nothing is.
    package func integrityProblems() throws(KeychainFailure) -> [String] {
        try withReader { session throws(KeychainFailure) in try session.integrityProblems() }
    }

    /// Whether the file's pages have checksums: those of format 1 get them with the first write that nobody else is in the way of.
    package func hasPageChecksums() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.formatVersion() >= StoreSchema.formatVersion }
    }

    /// Whether pages of the file are not what was written, as far as their checksums tell.
    package func hasDamagedPages() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.hasDamagedPages() }
    }

    func withReader<Result>(
        _ body: (StoreSession) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try refuseForkedChild()
        let session = try checkOutReader()
        defer { giveBack(session) }
        let result = try body(session)
        if let file = session.immutableFile, !file.isUnchanged {
            drop()
            throw KeychainFailure(.notAvailable, "the store was changed while it was read without locks; try again")
        }
        return result
    }

    private func checkOutReader() throws(KeychainFailure) -> StoreSession {
        let now = MonotonicClock.coarseNowNanoseconds()
        let found = pool.withLock { $0.checkOutReader(nowNanoseconds: now) }
        switch found {
        case .closed: throw Self.closedFailure
        case .open(let epoch): return try openSession(.reader, epoch: epoch)
        case .ready(let session):
            session.startReading()
            return session
        case .unchecked(let session):
            guard session.pathStillMatchesFile else { return try openSession(.reader, epoch: drop(ifEpoch: session.epoch)) }
            session.startReading()
            return session
        }
    }

    private func giveBack(_ session: StoreSession) {
        session.finishReading()
        if session.health.isBroken { drop(ifEpoch: session.epoch) }
        pool.withLock { $0.giveBack(reader: session) }
    }

    // MARK: Connections

    /// The writer's connection.
    ///
    /// The caller has the writer's turn.
    func checkOutWriter(deadlineNanoseconds: UInt64) throws(KeychainFailure) -> StoreSession {
        let (existing, epoch, isClosed, mustRewrite) = pool.withLock { ($0.writer, $0.epoch, $0.isClosed, $0.lastOutcomeIsUnknown) }
        if isClosed { throw Self.closedFailure }
        if let existing { return existing }
        let session = try openWriter(epoch: epoch, mayUpgrade: !mustRewrite, deadlineNanoseconds: deadlineNanoseconds)
        try session.makeDurable(deadlineNanoseconds: deadlineNanoseconds)
        if mustRewrite {
            // What a failed flush left in the -wal may look written and not be on the disk. Behind it nothing would be durable,
            // so it is copied out and flushed elsewhere first.
            guard try session.connection.checkpointAndTruncate() else {
                throw KeychainFailure(
                    .notAvailable, "after a disk failure the store must be flushed first, and another process is reading it")
            }
        }
        pool.withLock { $0.put(writer: session) }
        return session
    }

    /// A store of an older format becomes one of the newest first, if nobody is at work on it.
    private func openWriter(
        epoch: UInt64, mayUpgrade: Bool, deadlineNanoseconds: UInt64
    ) throws(KeychainFailure) -> StoreSession {
        var session: StoreSession? = try openSession(.writer, epoch: epoch, deadlineNanoseconds: deadlineNanoseconds)
        if let session, !(session.isOldFormat && mayUpgrade) { return session }
        // For the upgrade nobody may have the file open, this process neither.
        session = nil
        let epoch = drop(ifEpoch: epoch)
        opening.upgradeFormat()
        return try openSession(.writer, epoch: epoch, deadlineNanoseconds: deadlineNanoseconds)
    }

    /// Another thread found that the store has to be opened anew, and closed this one meanwhile.
    private static var closedFailure: KeychainFailure {
        KeychainFailure(.notAvailable, "the store was closed", requiresReopening: true)
    }

    private func openSession(
        _ role: StoreOpener.Role, epoch: UInt64, deadlineNanoseconds: UInt64? = nil
    ) throws(KeychainFailure) -> StoreSession {
        let session = try opening.openSession(role, epoch: epoch, deadlineNanoseconds: deadlineNanoseconds)
        guard try session.storeID() == storeID else {
            throw KeychainFailure(
                .notAvailable, "another store has taken the place of the one at \(opening.path)", requiresReopening: true)
        }
        return session
    }

    /// Closes all connections that are idle, and the others when they are given back.
    ///
    /// The next call opens new ones, of the epoch that is answered.
    @discardableResult
    func drop(ifEpoch failed: UInt64? = nil, outcomeIsUnknown: Bool = false) -> UInt64 {
        let (dropped, epoch) = pool.withLock { pool in
            (pool.invalidateSessions(after: failed, outcomeIsUnknown: outcomeIsUnknown), pool.epoch)
        }
        // Closed here, outside the lock.
        withExtendedLifetime(dropped) {}
        return epoch
    }
}

/// How a store is opened.
///
/// The defaults are what the engine uses.
package struct StoreOptions: Sendable {
    /// How long a call may wait for locks, all its waits together.
    package var busyTimeoutMilliseconds: Int
    package var fileSystem: FileSystemProbe
    /// For tests only: anything but `.full` loses acknowledged writes when the power fails.
    package var synchronous: SynchronousMode
    /// SQLite's layer below, by name; nil is the system's own.
    ///
    /// Tests put one there that fails on purpose.
    package var vfsName: String?

    package init(
        busyTimeoutMilliseconds: Int = 5_000, fileSystem: FileSystemProbe = .system, synchronous: SynchronousMode = .full,
        vfsName: String? = nil
    ) {
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
        self.fileSystem = fileSystem
        self.synchronous = synchronous
        self.vfsName = vfsName
    }
}
