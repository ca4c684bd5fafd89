// SPDX-License-Identifier: Apache-2.0
#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// A lock whose waiters give up at a deadline.
@safe final class TimedLock: @unchecked Sendable {
    // Unchecked: `isTaken` is touched only while `mutex` is held; the two pointers never change.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let released: UnsafeMutablePointer<pthread_cond_t>
    private var isTaken = false

    init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe released = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(released, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(released)
        unsafe pthread_mutex_destroy(mutex)
        unsafe released.deallocate()
        unsafe mutex.deallocate()
    }

    /// Takes the lock; false when it was not to be had until the deadline, a time of `MonotonicClock`.
    func take(untilNanoseconds deadline: UInt64) -> Bool {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        var end = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
        while isTaken {
            let isLate = unsafe pthread_cond_timedwait(released, mutex, &end) == ETIMEDOUT
            // Late and yet free: the wake-up may have been ours, and nobody else would get it.
            if isLate && isTaken { return false }
        }
        isTaken = true
        return true
    }

    func giveBack() {
        unsafe pthread_mutex_lock(mutex)
        isTaken = false
        unsafe pthread_cond_signal(released)
        unsafe pthread_mutex_unlock(mutex)
    }
}
