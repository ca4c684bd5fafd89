// SPDX-License-Identifier: Apache-2.0

/// The unit of a figure.
package enum MeasuredUnit: String, Codable, Sendable {
    case microseconds
    case bytes

    package func text(_ value: Double) -> String {
        switch self {
        case .microseconds: Quantity.time(microseconds: value)
        case .bytes: Quantity.size(bytes: value)
        }
    }

    /// Returns a power of ten without trailing zeros after the decimal point.
    package func decade(_ value: Double) -> String {
        let words = text(value).split(separator: " ")
        return "\(words[0].split(separator: ".")[0]) \(words[1])"
    }
}
