// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The requests that one caller writes together with its own: one transaction, one flush.
///
/// None is answered before the outcome of all is known, failures included: what a request found may rest on what another one of the
/// group wrote.
struct WriteGroup {
    private static let countLimit = 64
    /// How long the first may be kept waiting for the others.
    private static let nanosecondLimit: UInt64 = 2_000_000

    enum Outcome {
        case committed
        /// Nothing was written: everybody tries alone, but for the one who is told why.
        case undone
        /// The same for all.
        case failed(KeychainFailure)
    }

    private enum Ending {
        case written
        /// Undone alone.
        case failed(KeychainFailure)
        /// It took the whole transaction with it.
        case undidAll(KeychainFailure)
    }

    private var members: [(request: WriteRequest, ending: Ending)] = []

    var count: Int { members.count }

    /// Runs each request that waits, in a savepoint of its own, and those that come as long as more are expected.
    ///
    /// False: the transaction is lost.
    mutating func join(_ session: StoreSession, from turns: WriterTurns) -> Bool {
        var first = turns.nextSharing()
        // A lone writer looks at no clock.
        guard first != nil || session.pace.expectedCount > 0 else { return true }
        let start = MonotonicClock.nowNanoseconds()
        let waitEnd = start + min(session.pace.patienceNanoseconds, Self.nanosecondLimit)
        while members.count < Self.countLimit {
            guard let request = first ?? next(from: turns, session.pace, waitEndNanoseconds: waitEnd) else { break }
            first = nil
            switch session.runInSavepoint(request.takeBody()) {
            case .kept: members.append((request, .written))
            case .undone(let failure): members.append((request, .failed(failure)))
            case .transactionLost(let failure):
                members.append((request, .undidAll(failure)))
                return false
            }
            guard MonotonicClock.nowNanoseconds() - start < Self.nanosecondLimit else { break }
        }
        return true
    }

    private func next(from turns: WriterTurns, _ pace: WritePace, waitEndNanoseconds: UInt64) -> WriteRequest? {
        members.count < pace.expectedCount ? turns.nextSharing(untilNanoseconds: waitEndNanoseconds) : turns.nextSharing()
    }

    func answer(_ outcome: Outcome) {
        for (request, ending) in members {
            switch (ending, outcome) {
            case (.written, .committed): request.answer(.written)
            case (.failed(let failure), .committed), (.undidAll(let failure), _), (_, .failed(let failure)):
                request.answer(.failed(failure))
            case (_, .undone): request.answer(.repeatAlone)
            }
        }
    }
}

/// What the last writes on a connection tell about the next ones.
struct WritePace {
    /// How many came together beside the first.
    private(set) var expectedCount = 0
    private var flushNanoseconds: UInt64 = 0

    /// How long it pays to wait for those who were answered together and are about to come again: a part of what a flush of their own
    /// would cost them.
    var patienceNanoseconds: UInt64 { flushNanoseconds / 4 }

    /// Runs `commit`, and remembers how many it was for and how long it took.
    mutating func note(_ group: WriteGroup, _ commit: () throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        expectedCount = group.count
        guard group.count > 0 else { return try commit() }
        let start = MonotonicClock.nowNanoseconds()
        try commit()
        flushNanoseconds = MonotonicClock.nowNanoseconds() - start
    }
}
