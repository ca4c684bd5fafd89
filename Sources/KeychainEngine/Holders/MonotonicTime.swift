// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// Time that only goes forward, whatever is done to the clock on the wall.
package protocol MonotonicTime: Sendable {
    /// Nanoseconds since some moment in the past.
    func nowNanoseconds() -> UInt64
}

/// The system's monotonic time, which goes on while the machine sleeps.
package struct SystemMonotonicTime: MonotonicTime {
    package init() {}

    package func nowNanoseconds() -> UInt64 {
        var time = timespec()
        // Cannot fail: the clock exists and the buffer is ours.
        _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}
