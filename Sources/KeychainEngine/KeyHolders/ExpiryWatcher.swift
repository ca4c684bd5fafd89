// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore
internal import Synchronization

/// The authentication contexts of this process that hold released keys.
///
/// A thread makes them drop the keys when the keychain locks or the time is up, even while no call uses them.
final class ExpiringContexts: ExpiringSecrets {
    static let shared = ExpiringContexts()

    private struct Entry {
        weak var context: AuthenticationContext?
    }

    private struct State {
        var entries: [Entry] = []
        var isWatcherRunning = false
    }

    private let state = Mutex(State())

    /// If the system has no thread, expired keys stay in memory until the next use of the context, but are never used.
    func watch(_ context: AuthenticationContext) {
        let starts = state.withLock { state in
            if !state.entries.contains(where: { $0.context === context }) { state.entries.append(Entry(context: context)) }
            defer { state.isWatcherRunning = true }
            return !state.isWatcherRunning
        }
        if starts, !ExpiryWatcher.start(watching: self) { state.withLock { $0.isWatcherRunning = false } }
    }

    func removeExpired() -> Bool {
        let contexts = state.withLock { state in
            state.entries.removeAll { $0.context == nil }
            return state.entries.compactMap(\.context)
        }
        for context in contexts where !context.look() {
            state.withLock { state in
                // Another call may have released keys to it in the meantime.
                if !context.isHolding { state.entries.removeAll { $0.context === context } }
            }
        }
        return state.withLock { state in
            if state.entries.isEmpty { state.isWatcherRunning = false }
            return !state.entries.isEmpty
        }
    }
}

/// Secrets in memory that expire.
protocol ExpiringSecrets: AnyObject, Sendable {
    /// Removes expired secrets. Returns false if none are left; the watcher then ends.
    func removeExpired() -> Bool
}

/// The thread that removes expired keys and keys of locked stores from memory, also in an idle process.
///
/// It starts with the first key and ends after the last.
enum ExpiryWatcher {
    /// The pause between two checks.
    ///
    /// Together with the check itself it is shorter than half a second.
    private static let pauseNanoseconds = 400_000_000

    /// Returns false if the system cannot create a thread.
    static func start(watching keys: any ExpiringSecrets) -> Bool {
        // Signals belong to the program: the new thread inherits a mask that blocks all of them. Both sets are ours.
        var every = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&every)
        guard unsafe pthread_sigmask(SIG_SETMASK, &every, &previous) == 0 else { return false }
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        // The thread takes this reference over.
        let context = unsafe Unmanaged.passRetained(Watched(keys))
        let result = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                ExpiryWatcher.watch(unsafe Unmanaged<Watched>.fromOpaque(context).takeRetainedValue().keys)
                return nil
            }, context.toOpaque())
        guard result == 0 else {
            unsafe context.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    /// Carries the reference into the thread.
    private final class Watched: Sendable {
        let keys: any ExpiringSecrets

        init(_ keys: any ExpiringSecrets) {
            self.keys = keys
        }
    }

    private static func watch(_ keys: any ExpiringSecrets) {
        while keys.removeExpired() {
            var pause = timespec(tv_sec: 0, tv_nsec: pauseNanoseconds)
            // Cannot return early, since all signals are blocked.
            _ = unsafe nanosleep(&pause, nil)
        }
    }
}
