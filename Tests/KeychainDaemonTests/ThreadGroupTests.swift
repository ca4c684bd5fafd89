// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainTestSupport
import Synchronization
import Testing

@testable import keychaind

@Suite("Calls that run at the same time", .blocking)
struct ThreadGroupTests {
    @Test("Each call begins before another one has to end")
    func simultaneous() {
        let begun = Counter()
        let results = ThreadGroup.results(for: [1, 2, 3]) { number in
            begun.count.withLock { $0 += 1 }
            return waitUntil { begun.count.withLock { $0 == 3 } } ? number : 0
        }
        #expect(results.sorted() == [1, 2, 3])
    }

    @Test("Nothing is called for no element, and one element takes no thread")
    func few() {
        #expect(ThreadGroup.results(for: [Int]()) { $0 }.isEmpty)
        #expect(ThreadGroup.results(for: [1]) { $0 } == [1])
    }

    private final class Counter: Sendable {
        let count = Mutex(0)
    }
}
