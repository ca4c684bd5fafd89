// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A logarithmic scale between two powers of ten.
struct LogarithmicScale {
    let firstExponent: Int
    let lastExponent: Int
    let start: Double
    let length: Double

    /// Creates the scale with the fewest whole decades that contain all `values`, at least one.
    ///
    /// Returns nil if no value is greater than zero.
    init?(_ values: [Double], start: Double, length: Double) {
        let positive = values.filter { $0 > 0 && $0.isFinite }
        guard let smallest = positive.min(), let largest = positive.max() else { return nil }
        firstExponent = Int(log10(smallest).rounded(.down))
        lastExponent = max(firstExponent + 1, Int(log10(largest).rounded(.up)))
        self.start = start
        self.length = length
    }

    func position(_ value: Double) -> Double {
        guard value > 0 else { return start }
        let part = (log10(value) - Double(firstExponent)) / Double(lastExponent - firstExponent)
        return start + min(max(part, 0), 1) * length
    }

    /// The powers of ten from the first to the last.
    var marks: [Double] { (firstExponent...lastExponent).map { pow(10, Double($0)) } }
}
