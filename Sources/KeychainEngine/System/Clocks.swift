// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import FoundationEssentials
internal import Glibc
internal import KeychainCore

/// When a question is over, on the system's monotonic clock.
struct PromptDeadline {
    let nanoseconds: UInt64

    init(seconds: UInt32) {
        nanoseconds = keychain_monotonic_nanoseconds() + UInt64(seconds) * 1_000_000_000
    }

    init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    var isOver: Bool { keychain_monotonic_nanoseconds() >= nanoseconds }

    /// What is left, as poll(2) takes it: rounded up, so that it ends no earlier.
    var remainingMilliseconds: Int32 {
        let now = keychain_monotonic_nanoseconds()
        guard now < nanoseconds else { return 0 }
        return Int32(clamping: (nanoseconds - now + 999_999) / 1_000_000)
    }

    /// What is left, in whole seconds, rounded down.
    var remainingSeconds: UInt32 { UInt32(max(remainingMilliseconds, 0) / 1_000) }

    /// This one, or one in so many milliseconds if that is earlier.
    func within(milliseconds: UInt64) -> PromptDeadline {
        PromptDeadline(nanoseconds: min(nanoseconds, keychain_monotonic_nanoseconds() + milliseconds * 1_000_000))
    }
}

/// Time that only goes forward, whatever is done to the clock on the wall.
package protocol ContinuousTime: Sendable {
    /// Nanoseconds since some moment in the past.
    func nowNanoseconds() -> UInt64
}

/// The system's monotonic time, which goes on while the machine sleeps.
package struct SystemContinuousTime: ContinuousTime {
    package init() {}

    package func nowNanoseconds() -> UInt64 {
        var time = timespec()
        // Cannot fail: the clock exists and the buffer is ours.
        _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}

/// The system's clock.
package struct SystemWallClock: WallClock {
    package init() {}

    package func now() -> Double { Date().timeIntervalSinceReferenceDate }
}
