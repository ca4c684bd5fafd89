// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A value that concurrent calls share, behind a lock that each of them holds only while it reads or replaces the value.
///
/// `Mutex` in Synchronization passes the lock on in the kernel as soon as two threads have met on it (`FUTEX_LOCK_PI`), and then each use of
/// it is a context switch: eight readers on two cores had a third of the rate of four. This is a pthread mutex, which any running thread
/// may take. Use `Mutex` where threads do not meet.
@safe package struct LockedValue<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Unchecked: both addresses never change, and the value is used by the thread that has the lock only.
    private let lock: UnsafeMutablePointer<keychain_mutex>
    private let value: UnsafeMutablePointer<Value>

    package init(_ initial: consuming sending Value) {
        unsafe lock = .allocate(capacity: 1)
        unsafe keychain_mutex_init(lock)
        unsafe value = .allocate(capacity: 1)
        unsafe value.initialize(to: initial)
    }

    deinit {
        unsafe value.deinitialize(count: 1)
        unsafe value.deallocate()
        unsafe keychain_mutex_destroy(lock)
        unsafe lock.deallocate()
    }

    /// Calls `body` with the value, which no other thread uses meanwhile.
    ///
    /// `body` must be short, and must not use the same `LockedValue`.
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        // Both were allocated by `init` and live as long as `self`.
        unsafe keychain_mutex_lock(lock)
        defer { unsafe keychain_mutex_unlock(lock) }
        return try unsafe body(&value.pointee)
    }
}

/// A value that is made once.
///
/// A failure is not kept: its cause, such as a lack of descriptors, may be over at the next call.
package final class FirstSuccess<Value: Sendable>: Sendable {
    private let made = LockedValue<Value?>(nil)

    package init() {}

    /// Returns the value, which `make` makes if there is none yet.
    package func value<Failure: Error>(_ make: () throws(Failure) -> Value) throws(Failure) -> Value {
        if let value = made.withLock({ $0 }) { return value }
        let value = try make()
        return made.withLock { made in
            // Of two that were made at the same moment, all callers use the first.
            let first = made ?? value
            made = first
            return first
        }
    }
}
