// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Synchronization
import Testing

@Suite("A lock with a deadline")
struct TimedLockTests {
    @Test("Whoever comes while it is taken gives up at the deadline, and only then")
    func deadline() {
        let lock = TimedLock()
        #expect(lock.take(untilNanoseconds: 0))
        #expect(!lock.take(untilNanoseconds: 0))
        #expect(!lock.take(withinSeconds: 0))
        lock.giveBack()
        #expect(lock.take(withinSeconds: 0))
    }

    /// A lock, and how many are within it.
    private final class Room: Sendable {
        private let lock = TimedLock()
        private let inside = Atomic(0)
        let mostInside = Atomic(0)

        /// Goes in and out so many times, and says how often it got in.
        func visit(times: Int) -> Int {
            var visits = 0
            for _ in 0..<times where lock.take(withinSeconds: 600) {
                mostInside.max(inside.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                visits += 1
                inside.subtract(1, ordering: .relaxed)
                lock.giveBack()
            }
            return visits
        }
    }

    @Test("Every waiter gets its turn, one at a time")
    func turns() async {
        let room = Room()
        let visits = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 { group.addTask { room.visit(times: 200) } }
            return await group.reduce(0, +)
        }
        #expect(visits == 800)
        #expect(room.mostInside.load(ordering: .relaxed) == 1)
    }
}
