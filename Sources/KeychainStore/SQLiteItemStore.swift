// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem
internal import Synchronization

/// A store in one SQLite file, shared by any number of threads and processes.
///
/// Reads run concurrently, each on a connection of a pool. Writes run one at a time on a connection of their own, and concurrent writes
/// share one flush. If one of the store's files is replaced or removed, writes notice before they are acknowledged, and reads within a second.
///
/// ## Retries
///
/// Every wait for a lock in one call ends at the deadline of that call, `StoreOptions.busyTimeoutMilliseconds` after it began to write,
/// or after its first wait to read. These are the loops that retry, and the reason each ends:
///
/// | Loop | Retries | Ends because |
/// |---|---|---|
/// | `BusyHandler.wait` (called by SQLite) | a lock of another connection | the deadline passes |
/// | `SQLiteConnection.copyDatabase` | the copy, while the source is locked | `BusyHandler.wait` returns false at the deadline |
/// | `WriterQueue.wait` | the wait for an answer, if a writer already runs the request at the deadline | that writer answers after its flush |
/// | `WriterQueue.waitForShareable` | waits for one more request | its deadline is at most 2 ms away |
/// | `WriteGroup.collectRequests` | runs one request each time | at most 64 requests and 2 ms |
/// | `SQLiteItemStore.perform` | a write that was rolled back because of its group | runs at most twice: the second time it is alone |
/// | `SQLiteItemStore.perform` | a write that damaged records of changes prevented | runs at most twice: the records are empty the second time |
/// | `SQLiteConnection.waitForWriters` | a look whether another connection writes | `BusyHandler.wait` returns false once the time is over |
/// | `StateComparison.settledContent` | a look whether the files are as recorded | at most twice |
/// | `LockedDatabase.lock` | the lock on a file to repair | the deadline passes |
/// | `StoreRepair.unusedName` | the next number for a file name | each existing file is skipped once |
/// | `keychain_wal_damage` (C) | a scan during which the -wal file changed | at most 10 scans |
/// | `keychain_page_checksums_next_damaged` (C) | a page that a checkpoint was writing | the page number increases each time |
///
/// Nothing else retries: a broken connection is closed, and the next call opens another.
package final class SQLiteItemStore: ItemStore {
    package let storeID: StoreID
    let opener: StoreOpener
    let writerQueue = WriterQueue()
    private let pool: LockedValue<ConnectionPool>
    private let protection = LockedValue<StateGuard?>(nil)

    var options: StoreOptions { opener.options }

    /// Opens an existing store.
    ///
    /// Never creates one.
    ///
    /// Throws `.notAvailable` for a file that is absent, damaged, not private, not a store, or of another format. The reason says which.
    package init(openingAt path: String, options: StoreOptions = StoreOptions()) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        opener = StoreOpener(path: path, options: options)
        try opener.requireStore()
        let session = try opener.openSession(.reader, poolGeneration: 0, deadlineNanoseconds: nil)
        storeID = try session.storeID()
        let scrubPending = try session.scrubPending() != nil
        pool = LockedValue(ConnectionPool(first: session))
        OpenStores.insert(self)
        guard scrubPending else { return }
        // Best effort: a later write or open retries.
        _ = try? withIdleWriter { session in finishScrub(on: session) }
    }

    deinit { OpenStores.remove(self) }

    /// Closes idle connections now and the rest when their calls end.
    ///
    /// Later calls fail.
    package func close() {
        guard !ForkDetection.isForkedChild else { return }
        pool.withLock { $0.isClosed = true }
        if writerQueue.tryAcquire() {
            defer { writerQueue.release() }
            _ = pool.withLock { $0.writer }?.checkpoint?.finish(waits: true, records: true)
        }
        // Closing the last connection may empty the -wal file.
        keepingVerified(stateGuard, opener.path) { _ = closeConnections() }
    }

    /// What the store's state is compared with; nil until `protect` is called.
    var stateGuard: StateGuard? { protection.withLock { $0 } }

    func attach(_ stateGuard: StateGuard) {
        protection.withLock { $0 = stateGuard }
        pool.withLock { $0.attach(stateGuard) }
    }

    // MARK: Reading

    package func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withReader { session throws(KeychainFailure) in try body(session) }
    }

    /// Returns the stored keybag, with both copies.
    package func keybag() throws(KeychainFailure) -> StoredKeybag {
        try withReader { session throws(KeychainFailure) in try session.keybag() }
    }

    /// Whether the -wal file may still contain bytes of an old keybag.
    ///
    /// A later write or open removes them.
    package func isScrubPending() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.scrubPending() != nil }
    }

    /// Finds the damaged pages of a store's files by their checksums, even if the store is too damaged to be opened.
    package static func damage(at path: String, options: StoreOptions = StoreOptions()) throws(KeychainFailure) -> FileDamage {
        try ForkDetection.requireNotForked()
        return try StoreOpener(path: path, options: options).findDamage()
    }

    /// Returns the problems of the file itself; empty if it is sound.
    package func integrityProblems() throws(KeychainFailure) -> [StructuralProblem] {
        try withReader { session throws(KeychainFailure) in try session.integrityProblems() }
    }

    /// Whether any page of the file has a wrong checksum.
    package func hasDamagedPages() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.hasDamagedPages() }
    }

    func withReader<Result>(
        _ body: (StoreSession) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try ForkDetection.requireNotForked()
        let session = try checkOutReader()
        defer { returnReader(session) }
        do throws(KeychainFailure) {
            let result = try body(session)
            if let file = session.immutableFile, !file.isUnchanged {
                closeConnections()
                throw KeychainFailure(.notAvailable, "the store was changed while it was read without locks; try again", subject: .store)
            }
            return result
        } catch {
            // After a file was lost, other processes write to a different file than this connection reads.
            guard session.health.isBroken, session.immutableFile == nil, !session.lostFiles.isEmpty else { throw error }
            throw abandonLostFiles(of: session)
        }
    }

    private func checkOutReader() throws(KeychainFailure) -> StoreSession {
        let now = MonotonicClock.coarseNowNanoseconds()
        let found = pool.withLock { $0.checkOutReader(nowNanoseconds: now) }
        switch found {
        case .closed: throw Self.closedFailure
        case .open(let generation): return try openSession(.reader, poolGeneration: generation)
        case .ready(let session):
            session.startReading()
            return session
        case .unchecked(let session):
            guard session.lostFiles.isEmpty else {
                guard session.immutableFile != nil else { throw abandonLostFiles(of: session) }
                return try openSession(.reader, poolGeneration: closeConnections(ifGeneration: session.poolGeneration))
            }
            session.startReading()
            return session
        }
    }

    private func returnReader(_ session: StoreSession) {
        session.finishReading()
        if session.health.isBroken { closeConnections(ifGeneration: session.poolGeneration) }
        pool.withLock { $0.returnReader(session) }
    }

    // MARK: Connections

    /// Closes the connections of all stores of this process at this path, after a file that `session` has open was removed or replaced.
    ///
    /// All of them share its -shm file, which stays in use until the last one is closed. Returns the failure to throw.
    func abandonLostFiles(of session: StoreSession) -> KeychainFailure {
        _ = session.restoreLostWAL()
        session.health.markBroken()
        for store in OpenStores.stores(at: opener.path) { store.closeConnections() }
        return StoreSession.filesReplaced
    }

    /// Returns the writer's connection, which is opened if necessary.
    ///
    /// The caller must be the admitted writer.
    func checkOutWriter(deadlineNanoseconds: UInt64) throws(KeychainFailure) -> StoreSession {
        let (existing, generation, isClosed, mustCheckpoint) = pool.withLock {
            ($0.writer, $0.generation, $0.isClosed, $0.lastOutcomeIsUnknown)
        }
        if isClosed { throw Self.closedFailure }
        let stateGuard = stateGuard
        if let existing {
            existing.stateGuard = stateGuard
            return existing
        }
        let session = try openSession(.writer, poolGeneration: generation, deadlineNanoseconds: deadlineNanoseconds)
        try session.makeDurable(deadlineNanoseconds: deadlineNanoseconds)
        if mustCheckpoint {
            // After a failed flush the kernel may consider frames of the -wal file clean that never reached the disk. No later frame
            // would be durable. So the content is first copied into the database and flushed there.
            guard try session.connection.checkpointAndTruncate() else {
                throw KeychainFailure(
                    .notAvailable, "after a disk failure the store must be flushed first, and another process is reading it",
                    subject: .store)
            }
        }
        pool.withLock { $0.setWriter(session) }
        return session
    }

    /// The failure after another thread found that the store must be reopened, and closed it.
    private static var closedFailure: KeychainFailure {
        KeychainFailure(.notAvailable, "the store was closed", subject: .store, requiresReopening: true)
    }

    func openSession(
        _ role: StoreOpener.Role, poolGeneration: UInt64, deadlineNanoseconds: UInt64? = nil
    ) throws(KeychainFailure) -> StoreSession {
        let stateGuard = stateGuard
        let states = stateGuard?.statesOfNewConnection() ?? []
        let session = try opener.openSession(role, poolGeneration: poolGeneration, deadlineNanoseconds: deadlineNanoseconds)
        session.stateGuard = stateGuard
        guard try session.storeID() == storeID else {
            throw KeychainFailure(
                .notAvailable, "the store at \(opener.path) was replaced by another one", path: opener.path, subject: .store,
                requiresReopening: true)
        }
        if let stateGuard {
            guard stateGuard.database == session.file.facts.identity else {
                throw KeychainFailure(
                    .notAvailable, "the store's file was replaced by another one", path: opener.path, subject: .store,
                    requiresReopening: true)
            }
            // The files may be altered so that only new connections read older content.
            try session.requireContent(notOlderThan: states, stateGuard.cipher)
        }
        return session
    }

    /// Closes the idle readers but one, and releases the caches of that one and of the writer, if no connection was used since the last call.
    ///
    /// Returns whether it did.
    package func releaseMemoryIfUnused() -> Bool {
        guard !ForkDetection.isForkedChild, let readers = pool.withLock({ $0.takeIfUnused() }) else { return false }
        if let kept = readers.last {
            kept.connection.releaseCache()
            pool.withLock { $0.returnReader(kept) }
        }
        guard writerQueue.tryAcquire() else { return true }
        defer { writerQueue.release() }
        pool.withLock { $0.writer }?.connection.releaseCache()
        return true
    }

    /// Closes idle connections now and the rest when they are returned to the pool.
    ///
    /// With `ifGeneration`, does nothing if that generation was already closed. Returns the generation of the connections that the next
    /// calls open.
    @discardableResult
    func closeConnections(ifGeneration failed: UInt64? = nil, outcomeIsUnknown: Bool = false) -> UInt64 {
        let (closed, generation) = pool.withLock { pool in
            (pool.invalidateSessions(after: failed, outcomeIsUnknown: outcomeIsUnknown), pool.generation)
        }
        // The connections are closed here, outside the lock.
        withExtendedLifetime(closed) {}
        return generation
    }
}

/// The open stores of this process.
private enum OpenStores {
    private struct Entry {
        weak var store: SQLiteItemStore?
    }

    private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    static func insert(_ store: SQLiteItemStore) {
        entries.withLock { $0[ObjectIdentifier(store)] = Entry(store: store) }
    }

    static func remove(_ store: SQLiteItemStore) {
        guard !ForkDetection.isForkedChild else { return }
        entries.withLock { $0[ObjectIdentifier(store)] = nil }
    }

    /// The references are released outside the lock: the last release of a store removes it from this list.
    static func stores(at path: String) -> [SQLiteItemStore] {
        entries.withLock { $0.values.compactMap(\.store) }.filter { $0.opener.path == path }
    }
}

/// Options for opening a store.
///
/// The engine uses the defaults.
package struct StoreOptions: Sendable {
    /// The longest time that one call waits for locks, all its waits taken together.
    package var busyTimeoutMilliseconds: Int
    package var fileSystem: FileSystemProbe
    /// For tests only: any mode but `.full` loses acknowledged writes in a power failure.
    package var synchronous: SynchronousMode
    /// The name of the base VFS, SQLite's interface to the file system; nil is the default VFS.
    ///
    /// Tests inject failures with a VFS of their own.
    package var vfsName: String?
    /// Whether pages with wrong checksums, and a -wal file with unreachable changes, are refused.
    ///
    /// Otherwise the store can only be read: to save its items, each of which is authenticated by itself.
    package var verifiesContent = true
    /// Whether an anchor counts although its file is not the one that it was written to.
    ///
    /// For tests on simulated disks, which create files again.
    package var acceptsCopiedAnchor = false
    /// The newest format that is not refused.
    ///
    /// Tests emulate an older program with a lower one.
    package var newestKnownFormat = StoreSchema.newestKnownFormat
    /// The longest time that a write waits for others that share its flush.
    ///
    /// Tests set a longer one, so that all writes share a flush even on a slow machine.
    package var groupNanosecondLimit: UInt64 = 2_000_000
    /// The number of pages in the -wal file from which a thread of its own copies them into the database: 16 MiB.
    ///
    /// Tests set a lower one.
    package var largeLogFrameCount: Int64 = 4_096
    /// The longest time that a write lets processes go first that wait.
    package var yieldNanosecondLimit: UInt64 = 2_000_000
    /// How much the store may keep; nil: as much as the disk has room for.
    package var quota: StoreQuota?

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
