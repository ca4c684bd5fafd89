// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A lock whose waiters give up at a deadline.
@safe package final class TimedLock: @unchecked Sendable {
    // Unchecked: the pointer never changes, and what it points to is touched only by functions that take its mutex.
    private let lock: OpaquePointer?

    package init() {
        unsafe lock = keychain_timed_lock_create()
    }

    deinit {
        unsafe keychain_timed_lock_destroy(lock)
    }

    /// Takes the lock; false when it was not to be had until the deadline, in nanoseconds of the system's monotonic clock.
    package func take(untilNanoseconds deadline: UInt64) -> Bool {
        // Here and below: the structure lives as long as `self`.
        unsafe keychain_timed_lock_acquire(lock, deadline)
    }

    /// Takes the lock; false when it was not to be had for so long.
    package func take(withinSeconds seconds: UInt32) -> Bool {
        take(untilNanoseconds: keychain_monotonic_nanoseconds() + UInt64(seconds) * 1_000_000_000)
    }

    package func giveBack() {
        unsafe keychain_timed_lock_release(lock)
    }
}
