// SPDX-License-Identifier: Apache-2.0

/// The typical duration of many samples, and the exceptional one.
package struct Latency: Codable, Equatable, Sendable {
    package let medianMicroseconds: Double
    package let p99Microseconds: Double
    package let sampleCount: Int

    package init(medianMicroseconds: Double, p99Microseconds: Double, sampleCount: Int) {
        self.medianMicroseconds = medianMicroseconds
        self.p99Microseconds = p99Microseconds
        self.sampleCount = sampleCount
    }

    /// Returns nil without a sample, because a missing measurement is not zero.
    package init?(_ samples: Samples) {
        let sorted = samples.nanoseconds.sorted()
        guard let median = Self.percentile(0.5, ofSorted: sorted), let p99 = Self.percentile(0.99, ofSorted: sorted) else { return nil }
        self.init(medianMicroseconds: Double(median) / 1_000, p99Microseconds: Double(p99) / 1_000, sampleCount: sorted.count)
    }

    /// The percentile by nearest rank: the smallest value that is at least as great as `part` of all values.
    ///
    /// Always one of the values, so the median of an even number is the lower of the two in the middle. With fewer than a
    /// hundred values p99 is the largest.
    package static func percentile<Value: Comparable>(_ part: Double, ofSorted values: [Value]) -> Value? {
        guard !values.isEmpty else { return nil }
        let rank = Int((part * Double(values.count)).rounded(.up))
        return values[min(max(rank, 1), values.count) - 1]
    }
}
