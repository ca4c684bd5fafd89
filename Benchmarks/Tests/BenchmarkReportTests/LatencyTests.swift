// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Testing

struct LatencyTests {
    @Test("The median of an even number of samples is the lower of the middle two")
    func median() {
        #expect(Latency.percentile(0.5, ofSorted: [7]) == 7)
        #expect(Latency.percentile(0.5, ofSorted: [1, 2, 3]) == 2)
        #expect(Latency.percentile(0.5, ofSorted: [1, 2, 3, 4]) == 2)
    }

    @Test("p99 is exceeded by one sample in a hundred at most")
    func p99() {
        #expect(Latency.percentile(0.99, ofSorted: Array(1...100)) == 99)
        #expect(Latency.percentile(0.99, ofSorted: Array(1...1_000)) == 990)
        #expect(Latency.percentile(0.99, ofSorted: Array(1...101)) == 100)
        #expect(Latency.percentile(0.99, ofSorted: Array(1...99)) == 99)
    }

    @Test("The range is from the smallest to the largest value", arguments: [1, 2, 99, 100, 1_000])
    func ends(count: Int) {
        #expect(Latency.percentile(0, ofSorted: Array(1...count)) == 1)
        #expect(Latency.percentile(1, ofSorted: Array(1...count)) == count)
    }

    @Test("Samples need not be sorted, and become microseconds")
    func unsorted() {
        let latency = Latency(Samples(nanoseconds: [9_000, 1_000, 5_500]))
        #expect(latency == Latency(medianMicroseconds: 5.5, p99Microseconds: 9, sampleCount: 3))
    }

    @Test("Without samples there is no value, not zero")
    func nothing() {
        #expect(Latency(Samples()) == nil)
        #expect(Latency.percentile(0.5, ofSorted: [Int]()) == nil)
    }
}
