// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// A queue of slow key derivations, each of which needs much memory and a processor.
///
/// One derivation of a store runs at a time. Those of several stores run together as far as their memory is within a budget, and take turns
/// otherwise: a process that has the keychains of several users does not let one user's passcodes delay those of another one.
final class DerivationQueue: Sendable {
    /// A derivation that waits.
    private final class Waiter: Sendable {
        let byteCount: Int
        /// Released when the derivation may begin.
        let mayBegin = TimedLock()

        init(byteCount: Int) {
            self.byteCount = byteCount
            _ = mayBegin.acquire(withinSeconds: 0)
        }
    }

    private struct Line {
        let store: Identifier128
        var waiters: [Waiter]
    }

    private struct State {
        /// The memory of the derivation that runs, by store.
        var running: [Identifier128: Int] = [:]
        /// The stores with derivations that wait; the one whose turn is next comes first.
        var lines: [Line] = []
    }

    /// That of a process: four derivations of the standard cost.
    static let shared = DerivationQueue(memoryByteCount: 4 * PasscodeCost.standard.memoryByteCount)

    private let memoryByteCount: Int
    private let state = Mutex(State())

    /// - Parameter memoryByteCount: The budget. A derivation that needs more runs alone.
    init(memoryByteCount: Int) {
        self.memoryByteCount = memoryByteCount
    }

    /// How many derivations wait.
    var waitingCount: Int { state.withLock { $0.lines.reduce(0) { $0 + $1.waiters.count } } }

    /// Waits until a derivation of the store may begin; the caller calls `end` after it.
    ///
    /// Throws `.notAvailable` if that takes longer than `seconds`.
    func waitForTurn(of store: Identifier128, byteCount: Int, withinSeconds seconds: UInt32) throws(KeychainFailure) -> Turn {
        let waiter = Waiter(byteCount: byteCount)
        state.withLock { state in
            if let index = state.lines.firstIndex(where: { $0.store == store }) {
                state.lines[index].waiters.append(waiter)
            } else {
                state.lines.append(Line(store: store, waiters: [waiter]))
            }
            admit(&state)
        }
        // The turn may have come at the last moment.
        guard waiter.mayBegin.acquire(withinSeconds: seconds) || !removeWaiting(waiter, of: store) else {
            throw KeychainFailure(.notAvailable, "other passcodes are being checked; try again later")
        }
        return Turn(queue: self, store: store)
    }

    /// The time in which one derivation runs.
    struct Turn {
        fileprivate let queue: DerivationQueue
        fileprivate let store: Identifier128

        func end() { queue.finish(store) }
    }

    /// Begins the derivations for which it is time.
    private func admit(_ state: inout State) {
        var index = 0
        while index < state.lines.count {
            let store = state.lines[index].store
            guard state.running[store] == nil else {
                index += 1
                continue
            }
            let waiter = state.lines[index].waiters[0]
            // Those behind this one wait too, or one that needs much memory would wait forever.
            guard state.running.isEmpty || state.running.values.reduce(waiter.byteCount, +) <= memoryByteCount else { return }
            state.running[store] = waiter.byteCount
            state.lines[index].waiters.removeFirst()
            if state.lines[index].waiters.isEmpty { state.lines.remove(at: index) } else { index += 1 }
            waiter.mayBegin.release()
        }
    }

    private func finish(_ store: Identifier128) {
        state.withLock { state in
            state.running[store] = nil
            // All others come first.
            if let index = state.lines.firstIndex(where: { $0.store == store }) { state.lines.append(state.lines.remove(at: index)) }
            admit(&state)
        }
    }

    /// Returns false if the derivation does not wait any more.
    private func removeWaiting(_ waiter: Waiter, of store: Identifier128) -> Bool {
        state.withLock { state in
            guard let index = state.lines.firstIndex(where: { $0.store == store }),
                let position = state.lines[index].waiters.firstIndex(where: { $0 === waiter })
            else { return false }
            state.lines[index].waiters.remove(at: position)
            if state.lines[index].waiters.isEmpty { state.lines.remove(at: index) }
            admit(&state)
            return true
        }
    }
}
