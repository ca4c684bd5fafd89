// SPDX-License-Identifier: Apache-2.0

/// The clock for creation and modification dates.
package protocol WallClock: Sendable {
    /// Seconds since 2001-01-01 00:00:00 UTC.
    func now() -> Double
}
