// SPDX-License-Identifier: Apache-2.0
internal import KeychainSystem

/// The open connections of a store.
///
/// The store's mutex guards it.
struct ConnectionPool {
    /// The number of readers kept for reuse.
    ///
    /// More may be checked out at the same time.
    private static let idleReaderLimit = 8
    private static let checkIntervalNanoseconds: UInt64 = 1_000_000_000

    private var idleReaders: [StoreSession]
    private(set) var writer: StoreSession?
    /// Increases each time all connections must be reopened.
    private(set) var generation: UInt64 = 0
    var isClosed = false
    /// Whether the last commit failed with an unknown outcome.
    private(set) var lastOutcomeIsUnknown = false
    private var lastCheckNanoseconds: UInt64
    /// Whether a connection was used since the last call of `takeIfUnused`.
    private var wasUsed = true
    /// Whether there is at most one idle reader, without a cache.
    private var isReduced = false

    enum Reader {
        case ready(StoreSession)
        /// Ready, but the path must first be checked: the last check is out of date.
        case unchecked(StoreSession)
        /// No reader is idle: open one.
        case open(generation: UInt64)
        case closed
    }

    init(first: StoreSession) {
        idleReaders = [first]
        lastCheckNanoseconds = MonotonicClock.coarseNowNanoseconds()
    }

    /// Gives the idle readers what the store's state is compared with.
    func attach(_ stateGuard: StateGuard) {
        for session in idleReaders { session.stateGuard = stateGuard }
    }

    mutating func checkOutReader(nowNanoseconds now: UInt64) -> Reader {
        guard !isClosed else { return .closed }
        noteUse()
        guard let session = idleReaders.popLast() else { return .open(generation: generation) }
        guard session.immutableFile != nil || now &- lastCheckNanoseconds > Self.checkIntervalNanoseconds else {
            return .ready(session)
        }
        lastCheckNanoseconds = now
        return .unchecked(session)
    }

    /// Keeps the writer for reuse, unless the pool was closed or invalidated since the writer was opened.
    mutating func setWriter(_ session: StoreSession) {
        lastOutcomeIsUnknown = false
        noteUse()
        guard session.poolGeneration == generation, !isClosed else { return }
        writer = session
    }

    private mutating func noteUse() {
        wasUsed = true
        isReduced = false
    }

    /// Removes all idle readers and returns them, if no connection was used since the last call; nil otherwise, and if that was done before.
    ///
    /// The caller may return one of them.
    mutating func takeIfUnused() -> [StoreSession]? {
        defer { wasUsed = false }
        guard !wasUsed, !isReduced, !isClosed else { return nil }
        isReduced = true
        defer { idleReaders = [] }
        return idleReaders
    }

    /// Removes all idle sessions and returns them to be closed outside the lock.
    ///
    /// `failed` is the generation of the session that failed. Sessions of one generation are invalidated once, however many fail.
    mutating func invalidateSessions(after failed: UInt64?, outcomeIsUnknown: Bool) -> [StoreSession] {
        if outcomeIsUnknown { lastOutcomeIsUnknown = true }
        guard failed == nil || failed == generation else { return [] }
        generation += 1
        defer {
            idleReaders = []
            writer = nil
        }
        return idleReaders + [writer].compactMap(\.self)
    }

    /// Keeps the reader for reuse.
    ///
    /// A reader of an earlier generation, or one too many, is closed when the caller releases it.
    mutating func returnReader(_ session: StoreSession) {
        guard session.poolGeneration == generation, !isClosed, idleReaders.count < Self.idleReaderLimit else { return }
        idleReaders.append(session)
    }
}
