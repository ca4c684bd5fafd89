// SPDX-License-Identifier: Apache-2.0

/// A goal and the measured value.
package struct Goal: Codable, Equatable, Sendable {
    package enum Direction: String, Codable, Sendable {
        case atMost
        case atLeast
    }

    package let name: String
    package let unit: String
    package let direction: Direction
    package let limit: Double
    /// Nil if it could not be measured on this machine.
    package let measured: Double?

    package init(_ name: String, _ direction: Direction, _ limit: Double, unit: String = "×", measured: Double?) {
        self.name = name
        self.direction = direction
        self.limit = limit
        self.unit = unit
        self.measured = measured
    }

    /// Nil if it was not measured.
    package var isMet: Bool? {
        measured.map { direction == .atMost ? $0 <= limit : $0 >= limit }
    }

    /// The factor by which the goal is met or missed: 1 or more.
    package var margin: Double? {
        guard let measured, measured > 0, limit > 0 else { return nil }
        return max(measured / limit, limit / measured)
    }
}
