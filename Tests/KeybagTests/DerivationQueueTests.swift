// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Synchronization
import Testing

@testable import Keybag

@Suite("The queue of key derivations", .blocking)
struct DerivationQueueTests {
    private static let first = Identifier128(high: 0, low: 1)
    private static let second = Identifier128(high: 0, low: 2)
    private static let third = Identifier128(high: 0, low: 3)

    @Test("A derivation of one store does not keep the passcode of another one waiting")
    func otherStore() throws {
        let store = try PasscodeStore()
        let turn = try DerivationQueue.shared.waitForTurn(of: Self.first, byteCount: 1, withinSeconds: 60)
        defer { turn.end() }
        #expect(throws: Never.self) { try store.unlockedKeys() }
    }

    @Test("One derivation of a store runs at a time, and the next one begins at its end")
    func oneStore() throws {
        let queue = DerivationQueue(memoryByteCount: 100)
        let turn = try queue.waitForTurn(of: Self.first, byteCount: 1, withinSeconds: 60)
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try queue.waitForTurn(of: Self.first, byteCount: 1, withinSeconds: 0)
        }
        #expect(queue.waitingCount == 0)
        let next = Waiting(queue, [(Self.first, 1)])
        turn.end()
        #expect(next.order() == [Self.first])
    }

    @Test("Many derivations of one store delay another store by one of them")
    func turns() throws {
        let queue = DerivationQueue(memoryByteCount: 1)
        let turn = try queue.waitForTurn(of: Self.first, byteCount: 1, withinSeconds: 60)
        let waiting = Waiting(queue, [(Self.first, 1), (Self.first, 1), (Self.second, 1), (Self.second, 1), (Self.third, 1)])
        turn.end()
        #expect(waiting.order() == [Self.second, Self.third, Self.first, Self.second, Self.first])
    }

    @Test("Derivations run together within the budget, and one that needs more runs alone and is not overtaken")
    func memory() throws {
        let queue = DerivationQueue(memoryByteCount: 10)
        let turns = [
            try queue.waitForTurn(of: Self.first, byteCount: 5, withinSeconds: 60),
            try queue.waitForTurn(of: Self.second, byteCount: 5, withinSeconds: 60),
        ]
        let waiting = Waiting(queue, [(Self.third, 20), (Identifier128(high: 0, low: 4), 1)])
        turns[0].end()
        #expect(queue.waitingCount == 2)
        turns[1].end()
        #expect(waiting.order() == [Self.third, Identifier128(high: 0, low: 4)])
    }

    /// Derivations that wait, in the order in which they were begun.
    private struct Waiting {
        private let threads: [StartedThreads<Void>]
        private let ran: OrderedStores

        init(_ queue: DerivationQueue, _ derivations: [(store: Identifier128, byteCount: Int)]) {
            let ran = OrderedStores()
            self.ran = ran
            threads = derivations.map { derivation in
                let count = queue.waitingCount
                let thread = StartedThreads<Void>([
                    {
                        guard
                            let turn = try? queue.waitForTurn(
                                of: derivation.store, byteCount: derivation.byteCount, withinSeconds: 600)
                        else { return }
                        ran.stores.withLock { $0.append(derivation.store) }
                        turn.end()
                    }
                ])
                waitUntil { queue.waitingCount > count }
                return thread
            }
        }

        /// Returns the stores in the order in which their derivations ran.
        func order() -> [Identifier128] {
            for thread in threads { _ = thread.outcomes() }
            return ran.stores.withLock { $0 }
        }
    }

    private final class OrderedStores: Sendable {
        let stores = Mutex<[Identifier128]>([])
    }
}
