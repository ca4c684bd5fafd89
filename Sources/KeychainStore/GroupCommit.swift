// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// A FIFO queue that admits one writer of this process at a time.
///
/// A thread that cannot write immediately queues a request. The current writer may run the request in its own transaction (a group
/// commit). Otherwise the request that has waited longest is admitted next. Each event wakes only the thread that it concerns.
final class WriterQueue: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [WriteRequest] = []
        /// Whether the current writer sleeps until a request arrives.
        var leaderIsWaiting = false
    }

    private let state = LockedValue(State())
    private let requestArrival = TimedLock()

    init() {
        _ = requestArrival.acquire(untilNanoseconds: 0)
    }

    /// The number of requests that wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Admits the caller if no writer is admitted.
    func tryAcquire() -> Bool {
        state.withLock { state in
            guard !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
    }

    /// Queues the request and waits for its answer.
    ///
    /// At its deadline the request leaves the queue, unless a writer already runs it. Then its flush is awaited without a deadline, like
    /// the flush of a transaction of its own.
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
        guard mustWait else { return .acquired }
        if leaderIsWaiting { requestArrival.release() }
        if let answer = request.waitForAnswer(untilNanoseconds: deadline) { return answer }
        let isWithdrawn = state.withLock { state in
            guard let place = state.waiting.firstIndex(where: { $0 === request }) else { return false }
            state.waiting.remove(at: place)
            return true
        }
        return isWithdrawn ? .timedOut : request.waitForAnswer(untilNanoseconds: .max) ?? .timedOut
    }

    /// Removes and returns the request that has waited longest, if it may join the current writer's transaction.
    ///
    /// If the queue is empty, waits until the deadline for a request to arrive.
    func waitForShareable(untilNanoseconds deadline: UInt64) -> WriteRequest? {
        while true {
            let (found, isEmpty) = state.withLock { state -> (WriteRequest?, Bool) in
                guard let first = state.waiting.first else {
                    state.leaderIsWaiting = true
                    return (nil, true)
                }
                state.leaderIsWaiting = false
                return (first.sharesFlush ? state.waiting.removeFirst() : nil, false)
            }
            // A request that may not share a transaction ends the group. Later requests do not overtake it.
            guard isEmpty else { return found }
            guard requestArrival.acquire(untilNanoseconds: deadline) else {
                state.withLock { $0.leaderIsWaiting = false }
                return nil
            }
        }
    }

    /// Removes and returns the request that has waited longest, if it may join the current writer's transaction.
    func nextShareable() -> WriteRequest? {
        state.withLock { $0.waiting.first?.sharesFlush == true ? $0.waiting.removeFirst() : nil }
    }

    /// Ends the current writer's admission and admits the request that has waited longest.
    func release() {
        let next = state.withLock { state -> WriteRequest? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.answer(.acquired)
    }
}

/// A write that waits until another caller runs it, or until the queue admits its own caller.
final class WriteRequest: @unchecked Sendable {
    // Unchecked: one thread at a time uses the request. It belongs to its caller until it is queued, then to the current writer, and to
    // its caller again once it was answered. The locks of the queue and of the answer order these uses.
    typealias Body = (StoreSession) throws(KeychainFailure) -> Void

    enum Answer {
        /// The queue has admitted the caller.
        case acquired
        /// The write is durable.
        case written
        case failed(KeychainFailure)
        /// The write was rolled back because of another request, and must be written in a transaction of its own.
        case retryAlone
        /// No writer ran the request before its deadline.
        case timedOut
    }

    /// Whether the request may share a transaction with others.
    let sharesFlush: Bool
    private var body: Body?
    private var answer = Answer.timedOut
    private let isAnswered = TimedLock()

    init(sharesFlush: Bool, _ body: @escaping Body) {
        self.sharesFlush = sharesFlush
        self.body = body
        _ = isAnswered.acquire(untilNanoseconds: 0)
    }

    /// Moves the closure out of the request.
    ///
    /// It belongs to the caller and must not be kept once the request is answered.
    func takeBody() -> Body? {
        defer { body = nil }
        return body
    }

    /// Releases the closure; the request has left the queue.
    func withdraw() { body = nil }

    func answer(_ answer: Answer) {
        body = nil
        self.answer = answer
        isAnswered.release()
    }

    /// Waits for the answer.
    ///
    /// Returns nil at the deadline.
    func waitForAnswer(untilNanoseconds deadline: UInt64) -> Answer? {
        isAnswered.acquire(untilNanoseconds: deadline) ? answer : nil
    }
}

/// A group commit: requests from several callers that share one transaction and one flush.
///
/// No request is answered before the outcome of the transaction is known, not even with a failure: a request may have failed because
/// of uncommitted changes of another member of the group.
struct WriteGroup {
    private static let countLimit = 64
    /// The longest time that collecting requests may delay the first one.
    private let nanosecondLimit: UInt64

    /// The outcome of the transaction.
    enum Outcome {
        case committed
        /// Nothing was written. Every member retries alone, except the one that aborted the transaction.
        case rolledBack
        /// Failed, with the same failure for every member.
        case failed(KeychainFailure)
    }

    private enum MemberResult {
        case written
        /// Only this member was rolled back.
        case failed(KeychainFailure)
        /// This member's failure ended the whole transaction.
        case abortedTransaction(KeychainFailure)
    }

    private var members: [(request: WriteRequest, result: MemberResult)] = []

    init(nanosecondLimit: UInt64) { self.nanosecondLimit = nanosecondLimit }

    var count: Int { members.count }

    /// Runs each waiting request in a savepoint of its own, and those that arrive while more are expected.
    ///
    /// Returns false if the transaction was lost.
    mutating func collectRequests(into session: StoreSession, from queue: WriterQueue) -> Bool {
        var first = queue.nextShareable()
        // Without other writers, skip reading the clock.
        guard first != nil || session.pacing.expectedCount > 0 else { return true }
        let start = MonotonicClock.nowNanoseconds()
        let waitEnd = start + min(session.pacing.groupWaitNanoseconds, nanosecondLimit)
        while members.count < Self.countLimit {
            guard let request = first ?? next(from: queue, session.pacing, waitEndNanoseconds: waitEnd) else { break }
            first = nil
            switch session.runInSavepoint(request.takeBody()) {
            case .released: members.append((request, .written))
            case .rolledBack(let failure): members.append((request, .failed(failure)))
            case .transactionLost(let failure):
                members.append((request, .abortedTransaction(failure)))
                return false
            }
            guard MonotonicClock.nowNanoseconds() - start < nanosecondLimit else { break }
        }
        return true
    }

    private func next(from queue: WriterQueue, _ pacing: GroupCommitPacing, waitEndNanoseconds: UInt64) -> WriteRequest? {
        members.count < pacing.expectedCount ? queue.waitForShareable(untilNanoseconds: waitEndNanoseconds) : queue.nextShareable()
    }

    func answer(_ outcome: Outcome) {
        for (request, result) in members {
            switch (result, outcome) {
            case (.written, .committed): request.answer(.written)
            case (.failed(let failure), .committed), (.abortedTransaction(let failure), _), (_, .failed(let failure)):
                request.answer(.failed(failure))
            case (_, .rolledBack): request.answer(.retryAlone)
            }
        }
    }
}

/// A prediction of group size and wait time from the last writes on a connection.
struct GroupCommitPacing {
    /// The number of requests that joined the last write.
    private(set) var expectedCount = 0
    private var flushNanoseconds: UInt64 = 0

    /// How long the next writer waits for that many requests to arrive: a fraction of the flush that each would need alone.
    var groupWaitNanoseconds: UInt64 { flushNanoseconds / 4 }

    /// Runs `commit`, and records the group's size and the duration of its flush.
    mutating func record(_ group: WriteGroup, committedBy commit: () throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        expectedCount = group.count
        guard group.count > 0 else { return try commit() }
        let start = MonotonicClock.nowNanoseconds()
        try commit()
        flushNanoseconds = MonotonicClock.nowNanoseconds() - start
    }
}
