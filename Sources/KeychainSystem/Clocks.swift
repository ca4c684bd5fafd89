// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// CLOCK_MONOTONIC, for deadlines: setting the wall clock does not change how long a wait takes.
package enum MonotonicClock {
    /// Nanoseconds since an arbitrary moment.
    package static func nowNanoseconds() -> UInt64 { nanoseconds(of: CLOCK_MONOTONIC) }

    /// The same with a resolution of a few milliseconds, and much faster.
    package static func coarseNowNanoseconds() -> UInt64 { nanoseconds(of: CLOCK_MONOTONIC_COARSE) }

    /// Sleeps; a signal may end the sleep early.
    package static func sleep(nanoseconds: UInt64) {
        var pause = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        // `pause` is a local variable.
        _ = unsafe nanosleep(&pause, nil)
    }
}

/// CLOCK_BOOTTIME, which also advances while the machine sleeps.
///
/// Locking after a timeout and the reuse of an authentication must count that time.
package struct SystemContinuousTime: ContinuousTime {
    package init() {}

    package func nowNanoseconds() -> UInt64 { nanoseconds(of: CLOCK_BOOTTIME) }
}

/// The system's wall clock.
package struct SystemWallClock: WallClock {
    /// Seconds from 1970-01-01 to 2001-01-01.
    private static let referenceDateSeconds = 978_307_200.0

    package init() {}

    package func now() -> Double {
        let time = read(CLOCK_REALTIME)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 - Self.referenceDateSeconds
    }
}

private func nanoseconds(of clock: clockid_t) -> UInt64 {
    let time = read(clock)
    return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
}

private func read(_ clock: clockid_t) -> timespec {
    var time = timespec()
    // Cannot fail: the clock exists and `time` is a local variable.
    _ = unsafe clock_gettime(clock, &time)
    return time
}

/// A moment on CLOCK_MONOTONIC at which a wait ends.
package struct Deadline: Hashable, Comparable, Sendable {
    package let nanoseconds: UInt64

    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    package static let never = Deadline(nanoseconds: .max)
    package static var now: Deadline { Deadline(nanoseconds: MonotonicClock.nowNanoseconds()) }

    package static func after(seconds: UInt32) -> Deadline { after(nanoseconds: UInt64(seconds) * 1_000_000_000) }

    package static func after(milliseconds: UInt64) -> Deadline {
        let (nanoseconds, overflows) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflows ? .never : after(nanoseconds: nanoseconds)
    }

    package static func after(nanoseconds: UInt64) -> Deadline {
        let (sum, overflows) = MonotonicClock.nowNanoseconds().addingReportingOverflow(nanoseconds)
        return overflows ? .never : Deadline(nanoseconds: sum)
    }

    package static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }

    package var isOver: Bool { remainingNanoseconds == 0 }

    package var remainingNanoseconds: UInt64 {
        let now = MonotonicClock.nowNanoseconds()
        return now < nanoseconds ? nanoseconds - now : 0
    }

    /// The remaining time as a timeout for poll(2): rounded up, so that the wait does not end early; -1 for `never`.
    var remainingMilliseconds: Int32 {
        guard self != .never else { return -1 }
        let (whole, part) = remainingNanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
        return Int32(clamping: part == 0 ? whole : whole + 1)
    }

    /// The remaining whole seconds: rounded up to milliseconds, then down.
    package var remainingSeconds: UInt32 { UInt32(clamping: (remainingNanoseconds / 1_000 + 999) / 1_000_000) }
}

extension TimedLock {
    /// Acquires the lock; returns false if it was held until the deadline.
    package func acquire(until deadline: Deadline) -> Bool { acquire(untilNanoseconds: deadline.nanoseconds) }
}
