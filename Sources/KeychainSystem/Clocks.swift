// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// Time that only goes forward, for deadlines: setting the wall clock shortens or stretches no wait.
package enum MonotonicClock {
    /// Nanoseconds since some moment in the past.
    package static func nowNanoseconds() -> UInt64 { read(CLOCK_MONOTONIC) }

    /// The same to within a few milliseconds, and cheaper by far.
    package static func coarseNowNanoseconds() -> UInt64 { read(CLOCK_MONOTONIC_COARSE) }

    package static func sleep(nanoseconds: UInt64) {
        var pause = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        // Woken early by a signal, it returns early: every caller looks at the clock again.
        _ = unsafe nanosleep(&pause, nil)
    }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        // Cannot fail: the clock exists and the buffer is ours.
        _ = unsafe clock_gettime(clock, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}
