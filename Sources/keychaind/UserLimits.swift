// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// What the connections of a user share, so that they do not use up the memory of keychaind.
///
/// What a search finds is in memory until the program has received it. A user has 128 connections, an item may have 64 MiB, and a program need not
/// read its replies for some seconds.
final class UserLimits: Sendable {
    /// Held while a request of several packets is received.
    let largeRequests = TimedLock()
    /// More than processors can perform at a time on most machines.
    private let searchesForOne = SearchLimit(count: 8)
    /// All items may match.
    ///
    /// Programs that do not read so many keep no search for one item waiting.
    private let searchesForSeveral = SearchLimit(count: 1)

    /// What limits a call; nil for calls whose results are small.
    func limit(of call: Call) -> SearchLimit? {
        switch call {
        case .copyMatching(let request): request.limit == 1 ? searchesForOne : searchesForSeveral
        case .survey: searchesForSeveral
        // They are few, and wait for no search for several items.
        case .places: searchesForOne
        default: nil
        }
    }
}

/// How many searches of one kind are performed at a time.
final class SearchLimit: Sendable {
    static let isReached = "the programs of the user search too much at the same time"
    /// As long as two programs may take to receive a reply.
    private static let timeoutSeconds: UInt32 = 20

    private struct State {
        var freeCount: Int
        /// Each is released when its search may begin.
        var waiters: [TimedLock] = []
    }

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(freeCount: count))
    }

    /// How many searches wait.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Waits until a search may begin; the caller calls `end` after it.
    ///
    /// Returns false if that takes too long. Searches begin in the order of their calls.
    func begin() -> Bool {
        let waiter = state.withLock { state -> TimedLock? in
            if state.freeCount > 0 {
                state.freeCount -= 1
                return nil
            }
            let waiter = TimedLock()
            _ = waiter.acquire(withinSeconds: 0)
            state.waiters.append(waiter)
            return waiter
        }
        guard let waiter else { return true }
        // The turn may have come at the last moment.
        return waiter.acquire(withinSeconds: Self.timeoutSeconds) || !remove(waiter)
    }

    func end() {
        state.withLock { state in
            if state.waiters.isEmpty { state.freeCount += 1 } else { state.waiters.removeFirst().release() }
        }
    }

    /// Returns false if the search does not wait any more.
    private func remove(_ waiter: TimedLock) -> Bool {
        state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return false }
            state.waiters.remove(at: index)
            return true
        }
    }
}

/// The place of one search among those of its user.
final class SearchTurn: Sendable {
    private let limit: SearchLimit
    private let isHeld = Mutex(true)

    /// Waits until the search may begin; nil if that takes too long.
    init?(_ limit: SearchLimit) {
        guard limit.begin() else { return nil }
        self.limit = limit
    }

    /// Ends the turn of the search, for good or while it waits for a person, which may take minutes.
    func release() {
        let wasHeld = isHeld.withLock { isHeld in
            defer { isHeld = false }
            return isHeld
        }
        if wasHeld { limit.end() }
    }

    /// Waits until the search may go on; returns false if that takes too long.
    func resume() -> Bool {
        guard limit.begin() else { return false }
        isHeld.withLock { $0 = true }
        return true
    }
}
