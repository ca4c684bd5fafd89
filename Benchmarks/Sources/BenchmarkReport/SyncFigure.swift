// SPDX-License-Identifier: Apache-2.0

/// One measured figure of one contestant that synchronizes.
package struct SyncFigure: Codable, Equatable, Sendable {
    /// What is measured.
    package enum Measure: String, Codable, CaseIterable, Sendable {
        /// What one changed password sends to the shared place.
        case bytesMoved
        /// What one changed password adds to the shared place.
        case bytesStored
        /// The same after the program's own cleaning of that place.
        case bytesStoredAfterCleaning
        /// The time in which a device reads the changes that it missed.
        case catchingUp
        /// The time in which two devices that both changed items become equal.
        case merging
        /// The time from the start of a write until a read on the other device returns the value.
        case writeToReadable

        package var title: String {
            switch self {
            case .bytesMoved: "moved for one changed password"
            case .bytesStored: "stored for one changed password"
            case .bytesStoredAfterCleaning: "stored for one changed password, after git gc"
            case .catchingUp: "catching up with missed changes"
            case .merging: "merging two diverged copies"
            case .writeToReadable: "from a write to the value on the other device"
            }
        }

        package var unit: MeasuredUnit {
            switch self {
            case .bytesMoved, .bytesStored, .bytesStoredAfterCleaning: .bytes
            case .catchingUp, .merging, .writeToReadable: .microseconds
            }
        }
    }

    package let contestant: Contestant
    package let measure: Measure
    package let itemCount: Int
    /// The changes that one sample is about.
    package let changeCount: Int
    package let median: Double
    package let p99: Double
    package let sampleCount: Int

    /// Returns nil without a sample, because a missing measurement is not zero.
    package init?(_ contestant: Contestant, _ measure: Measure, itemCount: Int, changeCount: Int = 1, samples: [Double]) {
        let sorted = samples.sorted()
        guard let median = Latency.percentile(0.5, ofSorted: sorted), let p99 = Latency.percentile(0.99, ofSorted: sorted) else {
            return nil
        }
        self.contestant = contestant
        self.measure = measure
        self.itemCount = itemCount
        self.changeCount = changeCount
        self.median = median
        self.p99 = p99
        sampleCount = sorted.count
    }

    var place: [Int] {
        [
            Measure.allCases.firstIndex(of: measure) ?? 0, itemCount, Contestant.allCases.firstIndex(of: contestant) ?? 0,
        ]
    }
}
