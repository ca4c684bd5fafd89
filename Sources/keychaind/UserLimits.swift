// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// What the connections of a user share, so that they do not use up the memory of keychaind.
struct UserLimits: Sendable {
    /// Held while a request of several packets is received.
    let largeRequests = TimedLock()
    let searches = SearchLimit()
}

/// How many searches of a user are performed at a time.
///
/// What a search finds is in memory until the program has received it. A user has 128 connections, an item may have 64 MiB, and a program need not
/// read its replies for some seconds.
final class SearchLimit: Sendable {
    /// More searches for one item than processors can perform at a time on most machines.
    static let capacity = 8
    static let isReached = "the programs of the user search too much at the same time"
    /// More than the time in which a reply must be received.
    private static let timeoutSeconds: UInt32 = 20

    private final class Waiter: Sendable {
        let weight: Int
        /// Released when the search may begin.
        let mayBegin = TimedLock()

        init(weight: Int) {
            self.weight = weight
            _ = mayBegin.acquire(withinSeconds: 0)
        }
    }

    private struct State {
        var used = 0
        var waiters: [Waiter] = []

        mutating func admit() {
            while let next = waiters.first, used + next.weight <= SearchLimit.capacity {
                used += next.weight
                waiters.removeFirst()
                next.mayBegin.release()
            }
        }
    }

    private let state = Mutex(State())

    /// How many searches wait.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Waits until a search with a weight of `capacity` at most may begin; the caller calls `end` after it.
    ///
    /// Returns false if that takes too long. Searches begin in the order of their calls.
    func begin(weight: Int) -> Bool {
        let waiter = state.withLock { state -> Waiter? in
            if state.waiters.isEmpty, state.used + weight <= Self.capacity {
                state.used += weight
                return nil
            }
            let waiter = Waiter(weight: weight)
            state.waiters.append(waiter)
            return waiter
        }
        guard let waiter else { return true }
        // The turn may have come at the last moment.
        return waiter.mayBegin.acquire(withinSeconds: Self.timeoutSeconds) || !remove(waiter)
    }

    func end(weight: Int) {
        state.withLock { state in
            state.used -= weight
            state.admit()
        }
    }

    /// Returns false if the search does not wait any more.
    private func remove(_ waiter: Waiter) -> Bool {
        state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return false }
            state.waiters.remove(at: index)
            state.admit()
            return true
        }
    }
}

/// The place of one search among those of its user.
final class SearchTurn: Sendable {
    private let limit: SearchLimit
    private let weight: Int
    private let isHeld = Mutex(true)

    /// Waits until the search may begin; nil if that takes too long.
    init?(_ limit: SearchLimit, weight: Int) {
        guard limit.begin(weight: weight) else { return nil }
        self.limit = limit
        self.weight = weight
    }

    /// Lets other searches begin, at the end, or while a person is asked, who may take minutes.
    func release() {
        let wasHeld = isHeld.withLock { isHeld in
            defer { isHeld = false }
            return isHeld
        }
        if wasHeld { limit.end(weight: weight) }
    }

    /// Waits until the search may go on; returns false if that takes too long.
    func resume() -> Bool {
        guard limit.begin(weight: weight) else { return false }
        isHeld.withLock { $0 = true }
        return true
    }
}

extension Call {
    /// The weight of a search; nil for other calls, whose results are small.
    ///
    /// A search for the values of several items, which may be all of them, is performed alone.
    var searchWeight: Int? {
        guard case .copyMatching(let request) = self else { return nil }
        if request.limit == 1 { return 1 }
        return request.includesSecrets ? SearchLimit.capacity : SearchLimit.capacity / 2
    }
}
