// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Whose turn it is to write: one at a time, in the order in which they came.
///
/// Who comes while another one writes leaves a request. The other one may run it in its own transaction; else the turn is handed on
/// to whoever has waited longest. Nobody is woken but those who are meant.
final class WriterQueue: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [WriteRequest] = []
        /// Whether the one whose turn it is sleeps until somebody comes.
        var leaderIsWaiting = false
    }

    private let state = Mutex(State())
    private let requestArrival = TimedLock()

    init() {
        _ = requestArrival.take(withinSeconds: 0)
    }

    /// How many wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    func tryAcquire() -> Bool {
        state.withLock { state in
            guard !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
    }

    /// Queues the request, and waits for what becomes of it.
    ///
    /// Before somebody runs it, it leaves the queue at its deadline. Afterwards the flush is waited for, as if it were its own.
    func wait(with request: WriteRequest, untilNanoseconds deadline: UInt64) -> WriteRequest.Answer {
        let (mustWait, leaderIsWaiting) = state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return (false, false)
            }
            state.waiting.append(request)
            defer { state.leaderIsWaiting = false }
            return (true, state.leaderIsWaiting)
        }
        guard mustWait else { return .turn }
        if leaderIsWaiting { requestArrival.giveBack() }
        if let answer = request.waitForAnswer(untilNanoseconds: deadline) { return answer }
        let isLate = state.withLock { state in
            guard let place = state.waiting.firstIndex(where: { $0 === request }) else { return false }
            state.waiting.remove(at: place)
            return true
        }
        return isLate ? .late : request.waitForAnswer(untilNanoseconds: .max) ?? .late
    }

    /// The request that has waited longest, if it may join the transaction of whoever holds the turn and asks.
    ///
    /// Where nobody waits, one that comes until the deadline.
    func dequeueShareable(untilNanoseconds deadline: UInt64) -> WriteRequest? {
        while true {
            let (found, isEmpty) = state.withLock { state -> (WriteRequest?, Bool) in
                guard let first = state.waiting.first else {
                    state.leaderIsWaiting = true
                    return (nil, true)
                }
                state.leaderIsWaiting = false
                return (first.sharesFlush ? state.waiting.removeFirst() : nil, false)
            }
            // One that must be alone ends the group: it is not passed over.
            guard isEmpty else { return found }
            guard requestArrival.take(untilNanoseconds: deadline) else {
                state.withLock { $0.leaderIsWaiting = false }
                return nil
            }
        }
    }

    /// The same, without waiting.
    func dequeueShareable() -> WriteRequest? {
        state.withLock { $0.waiting.first?.sharesFlush == true ? $0.waiting.removeFirst() : nil }
    }

    func giveBack() {
        let next = state.withLock { state -> WriteRequest? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.answer(.turn)
    }
}

/// One caller's write that waits until another caller runs it, or until it is its own turn to write.
final class WriteRequest: @unchecked Sendable {
    // Unchecked: it belongs to its caller until it is queued, then to who holds the writer's turn, and to its caller again once it was
    // answered. The locks of the queue and of the answer lie between them.
    typealias Body = (StoreSession) throws(KeychainFailure) -> Void

    enum Answer {
        /// The caller now holds the writer's turn.
        case turn
        /// What was written is durable.
        case written
        case failed(KeychainFailure)
        /// Undone through no fault of its own: it is to be written in a transaction of its own.
        case retryAlone
        /// Nobody has looked at it until its deadline.
        case late
    }

    /// Whether it may be one of several in a transaction.
    let sharesFlush: Bool
    private var body: Body?
    private var answer = Answer.late
    private let isAnswered = TimedLock()

    init(sharesFlush: Bool, _ body: @escaping Body) {
        self.sharesFlush = sharesFlush
        self.body = body
        _ = isAnswered.take(withinSeconds: 0)
    }

    /// Hands the body over: what is lent by a caller must not be kept when that caller goes on.
    func takeBody() -> Body? {
        defer { body = nil }
        return body
    }

    /// Lets go of what was lent: nobody asks for it any more.
    func withdraw() { body = nil }

    func answer(_ answer: Answer) {
        body = nil
        self.answer = answer
        isAnswered.giveBack()
    }

    /// Nil when there is no answer until the deadline.
    func waitForAnswer(untilNanoseconds deadline: UInt64) -> Answer? {
        isAnswered.take(untilNanoseconds: deadline) ? answer : nil
    }
}

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
        case abortedTransaction(KeychainFailure)
    }

    private var members: [(request: WriteRequest, ending: Ending)] = []

    var count: Int { members.count }

    /// Runs each request that waits, in a savepoint of its own, and those that come as long as more are expected.
    ///
    /// False: the transaction is lost.
    mutating func join(_ session: StoreSession, from turns: WriterQueue) -> Bool {
        var first = turns.dequeueShareable()
        // A lone writer looks at no clock.
        guard first != nil || session.pacing.expectedCount > 0 else { return true }
        let start = MonotonicClock.nowNanoseconds()
        let waitEnd = start + min(session.pacing.patienceNanoseconds, Self.nanosecondLimit)
        while members.count < Self.countLimit {
            guard let request = first ?? next(from: turns, session.pacing, waitEndNanoseconds: waitEnd) else { break }
            first = nil
            switch session.runInSavepoint(request.takeBody()) {
            case .kept: members.append((request, .written))
            case .undone(let failure): members.append((request, .failed(failure)))
            case .transactionLost(let failure):
                members.append((request, .abortedTransaction(failure)))
                return false
            }
            guard MonotonicClock.nowNanoseconds() - start < Self.nanosecondLimit else { break }
        }
        return true
    }

    private func next(from turns: WriterQueue, _ pacing: GroupCommitPacing, waitEndNanoseconds: UInt64) -> WriteRequest? {
        members.count < pacing.expectedCount ? turns.dequeueShareable(untilNanoseconds: waitEndNanoseconds) : turns.dequeueShareable()
    }

    func answer(_ outcome: Outcome) {
        for (request, ending) in members {
            switch (ending, outcome) {
            case (.written, .committed): request.answer(.written)
            case (.failed(let failure), .committed), (.abortedTransaction(let failure), _), (_, .failed(let failure)):
                request.answer(.failed(failure))
            case (_, .undone): request.answer(.retryAlone)
            }
        }
    }
}

/// What the last writes on a connection tell about the next ones.
struct GroupCommitPacing {
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
