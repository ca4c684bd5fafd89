// SPDX-License-Identifier: Apache-2.0
import Glibc

/// How long each of many runs of one thing took.
struct Samples {
    private(set) var nanoseconds: [UInt64] = []

    /// Runs `body`, and remembers how long it took.
    mutating func measure(_ body: () throws -> Void) rethrows {
        let start = Self.now()
        try body()
        nanoseconds.append(Self.now() - start)
    }

    mutating func append(nanoseconds time: UInt64) {
        nanoseconds.append(time)
    }

    mutating func append(_ others: Samples) {
        nanoseconds += others.nanoseconds
    }

    /// Measures `count` runs, after as many again, up to a fifth, that only warm caches.
    static func measure(_ count: Int, _ body: (_ index: Int) throws -> Void) rethrows -> Samples {
        var samples = Samples()
        let warmUp = count / 5
        for index in 0..<warmUp { try body(index) }
        samples.nanoseconds.reserveCapacity(count)
        for index in warmUp..<warmUp + count { try samples.measure { try body(index) } }
        return samples
    }

    func summary(_ figure: Figure) -> Summary {
        let sorted = nanoseconds.sorted()
        // The nearest rank: the smallest value that at least that part of the samples does not exceed.
        let rank = { (part: Double) in sorted.isEmpty ? 0 : sorted[max(0, Int((part * Double(sorted.count)).rounded(.up)) - 1)] }
        return Summary(figure: figure, median: Double(rank(0.5)) / 1_000, p99: Double(rank(0.99)) / 1_000, count: sorted.count)
    }

    private static func now() -> UInt64 {
        var time = timespec()
        // The clock exists and the buffer is ours.
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
