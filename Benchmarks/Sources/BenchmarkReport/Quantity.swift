// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Numbers formatted for people.
package enum Quantity {
    /// Returns a number with at least three significant digits: 0.0123, 1.23, 12.3, 123, 1,234.
    package static func short(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        guard value != 0 else { return "0" }
        let places = max(0, 2 - Int(log10(abs(value)).rounded(.down)))
        // Rounding may add a digit before the decimal point and then removes one after it: 9.999 is 10.0, never 10.00.
        let factor = pow(10, Double(places))
        let rounded = (value * factor).rounded() / factor
        let placesAfterRounding = max(0, 2 - Int(log10(abs(rounded)).rounded(.down)))
        guard placesAfterRounding > 0 else { return grouped(Int(rounded)) }
        return String(format: "%.\(placesAfterRounding)f", rounded)
    }

    package static func time(microseconds: Double) -> String {
        switch microseconds {
        case ..<1: short(microseconds * 1_000) + " ns"
        case ..<1_000: short(microseconds) + " µs"
        case ..<1_000_000: short(microseconds / 1_000) + " ms"
        default: short(microseconds / 1_000_000) + " s"
        }
    }

    package static func size(bytes: Double) -> String {
        switch bytes {
        case ..<1_000: short(bytes) + " B"
        case ..<1_000_000: short(bytes / 1_000) + " KB"
        default: short(bytes / 1_000_000) + " MB"
        }
    }

    /// Returns a number with commas as thousands separators.
    package static func grouped(_ value: Int) -> String {
        var rest = String(value.magnitude)
        var groups: [String] = []
        while rest.count > 3 {
            groups.insert(String(rest.suffix(3)), at: 0)
            rest.removeLast(3)
        }
        return (value < 0 ? "-" : "") + ([rest] + groups).joined(separator: ",")
    }
}
