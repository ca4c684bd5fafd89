// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Puts values between two powers of ten on a line.
struct LogarithmicScale {
    let firstExponent: Int
    let lastExponent: Int
    let start: Double
    let length: Double

    /// The fewest whole decades that hold all of `values`, one at least.
    ///
    /// Nil when no value is above zero.
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

    /// Each power of ten from the first to the last.
    var marks: [Double] { (firstExponent...lastExponent).map { pow(10, Double($0)) } }
}
