// SPDX-License-Identifier: Apache-2.0
internal import KeychainSystem

/// The open connections of a store.
///
/// Guarded by the store's mutex.
struct ConnectionPool {
    /// More readers than this may be at work, but only so many wait for the next call.
    private static let idleReaderLimit = 8
    private static let checkIntervalNanoseconds: UInt64 = 1_000_000_000

    private var idleReaders: [StoreSession]
    private(set) var writer: StoreSession?
    /// Rises when all connections have to be opened anew.
    private(set) var epoch: UInt64 = 0
    var isClosed = false
    /// A commit ended without an answer from the disk.
    private(set) var lastOutcomeIsUnknown = false
    private var lastCheckNanoseconds: UInt64

    enum Reader {
        case ready(StoreSession)
        /// Ready, but the last look at the file is a while ago.
        case unchecked(StoreSession)
        /// None idle: open one.
        case open(epoch: UInt64)
        case closed
    }

    init(first: StoreSession) {
        idleReaders = [first]
        lastCheckNanoseconds = MonotonicClock.coarseNowNanoseconds()
    }

    mutating func checkOutReader(nowNanoseconds now: UInt64) -> Reader {
        guard !isClosed else { return .closed }
        guard let session = idleReaders.popLast() else { return .open(epoch: epoch) }
        guard session.immutableFile != nil || now &- lastCheckNanoseconds > Self.checkIntervalNanoseconds else {
            return .ready(session)
        }
        lastCheckNanoseconds = now
        return .unchecked(session)
    }

    mutating func put(writer session: StoreSession) {
        lastOutcomeIsUnknown = false
        guard session.epoch == epoch, !isClosed else { return }
        writer = session
    }

    /// Parts from all sessions and gives them to the caller, who lets go of them.
    ///
    /// Only once for each epoch that failed.
    mutating func invalidateSessions(after failed: UInt64?, outcomeIsUnknown: Bool) -> [StoreSession] {
        if outcomeIsUnknown { lastOutcomeIsUnknown = true }
        guard failed == nil || failed == epoch else { return [] }
        epoch += 1
        defer {
            idleReaders = []
            writer = nil
        }
        return idleReaders + [writer].compactMap(\.self)
    }

    /// Keeps the session for the next call, unless its time is over: then it is closed when its last user lets go of it.
    mutating func giveBack(reader session: StoreSession) {
        guard session.epoch == epoch, !isClosed, idleReaders.count < Self.idleReaderLimit else { return }
        idleReaders.append(session)
    }
}
