// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The durations of many runs of one operation.
package struct Samples: Sendable {
    package private(set) var nanoseconds: [UInt64] = []

    package init(nanoseconds: [UInt64] = []) {
        self.nanoseconds = nanoseconds
    }

    /// Runs `body` and records its duration.
    package mutating func measure(_ body: () throws -> Void) rethrows {
        let start = Self.now()
        try body()
        nanoseconds.append(Self.now() - start)
    }

    package mutating func append(nanoseconds time: UInt64) {
        nanoseconds.append(time)
    }

    package mutating func append(_ others: Samples) {
        nanoseconds += others.nanoseconds
    }

    /// Measures `count` runs, after a fifth as many that only warm the caches.
    package static func measure(_ count: Int, _ body: (_ index: Int) throws -> Void) rethrows -> Samples {
        var samples = Samples()
        let warmUp = count / 5
        for index in 0..<warmUp { try body(index) }
        samples.nanoseconds.reserveCapacity(count)
        for index in warmUp..<warmUp + count { try samples.measure { try body(index) } }
        return samples
    }

    /// A monotonic clock.
    package static func now() -> UInt64 {
        var time = timespec()
        // The clock exists and the buffer is ours.
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
