// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// Whose turn it is to write: one at a time, in the order in which they came.
///
/// Who comes while another one writes leaves a request. The other one may run it in its own transaction; else the turn is handed on
/// to whoever has waited longest. Nobody is woken but those who are meant.
final class WriterTurns: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [WriteRequest] = []
        /// Whether the one whose turn it is sleeps until somebody comes.
        var isWaitedFor = false
    }

    private let state = Mutex(State())
    private let arrival = TimedLock()

    init() {
        _ = arrival.take(withinSeconds: 0)
    }

    /// How many wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    func takeIfFree() -> Bool {
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
        let (mustWait, isWaitedFor) = state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return (false, false)
            }
            state.waiting.append(request)
            defer { state.isWaitedFor = false }
            return (true, state.isWaitedFor)
        }
        guard mustWait else { return .turn }
        if isWaitedFor { arrival.giveBack() }
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
    func nextSharing(untilNanoseconds deadline: UInt64) -> WriteRequest? {
        while true {
            let (found, isEmpty) = state.withLock { state -> (WriteRequest?, Bool) in
                guard let first = state.waiting.first else {
                    state.isWaitedFor = true
                    return (nil, true)
                }
                state.isWaitedFor = false
                return (first.sharesFlush ? state.waiting.removeFirst() : nil, false)
            }
            // One that must be alone ends the group: it is not passed over.
            guard isEmpty else { return found }
            guard arrival.take(untilNanoseconds: deadline) else {
                state.withLock { $0.isWaitedFor = false }
                return nil
            }
        }
    }

    /// The same, without waiting.
    func nextSharing() -> WriteRequest? {
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
