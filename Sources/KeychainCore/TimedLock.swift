// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A lock whose waiters time out.
@safe package final class TimedLock: @unchecked Sendable {
    // Unchecked: the pointer never changes, and the functions that use its target hold the mutex in it.
    private let lock: OpaquePointer?

    package init() {
        unsafe lock = keychain_timed_lock_create()
    }

    deinit {
        unsafe keychain_timed_lock_destroy(lock)
    }

    /// Acquires the lock; returns false at the deadline, in nanoseconds of the system's monotonic clock.
    package func acquire(untilNanoseconds deadline: UInt64) -> Bool {
        // Here and below: the structure lives as long as `self`.
        unsafe keychain_timed_lock_acquire(lock, deadline)
    }

    /// Acquires the lock; returns false after so many seconds.
    package func acquire(withinSeconds seconds: UInt32) -> Bool {
        unsafe keychain_timed_lock_acquire_within(lock, seconds)
    }

    /// Releases the lock, on any thread.
    package func release() {
        unsafe keychain_timed_lock_release(lock)
    }
}
