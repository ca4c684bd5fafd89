// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@Suite("A value behind a lock")
struct LockedValueTests {
    private final class Resource: Sendable {
        private let onDeinit: @Sendable () -> Void

        init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }

        deinit { onDeinit() }
    }

    @Test("Threads change it one at a time")
    func exclusive() {
        let counts = LockedValue((first: 0, second: 0))
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<5_000 {
                counts.withLock { counts in
                    let first = counts.first
                    counts.second += 1
                    counts.first = first + 1
                }
            }
        }
        #expect(counts.withLock { $0 } == (40_000, 40_000))
    }

    @Test("An error leaves it unlocked, and the value is released with it")
    func released() {
        let count = LockedValue(0)
        withExtendedLifetime(count) {
            struct Planted: Error {}
            func use() {
                let value = LockedValue<Resource?>(Resource { count.withLock { $0 += 1 } })
                #expect(throws: Planted.self) { try value.withLock { _ throws(Planted) in throw Planted() } }
                value.withLock { _ in }
            }
            use()
        }
        #expect(count.withLock { $0 } == 1)
    }
}

@Suite("A value that is made once")
struct FirstSuccessTests {
    private struct Shortage: Error {}

    /// A program whose first call comes without a free descriptor would be refused until it is restarted.
    @Test("A failure is not kept, and the first success is")
    func failure() throws {
        let value = FirstSuccess<Int>()
        #expect(throws: Shortage.self) { try value.value { () throws(Shortage) in throw Shortage() } }
        #expect(value.value { 1 } == 1)
        #expect(try value.value { () throws(Shortage) in throw Shortage() } == 1)
    }
}
