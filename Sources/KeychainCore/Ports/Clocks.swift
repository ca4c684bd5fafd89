// SPDX-License-Identifier: Apache-2.0

/// A wall clock, for creation and modification dates.
package protocol WallClock: Sendable {
    /// Seconds since 2001-01-01 00:00:00 UTC.
    func now() -> Double
}

/// A clock that only goes forward and counts the time in which the machine sleeps, for locking after a timeout.
package protocol ContinuousTime: Sendable {
    /// Nanoseconds since an arbitrary moment.
    func nowNanoseconds() -> UInt64
}
