// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore
internal import Synchronization

/// The contexts of this process that carry something: a thread lets them drop it when the keychain locks or their time is up, also
/// while nobody uses them.
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

    /// Without a thread it is dropped at its next use: what is over serves nobody, though it lies in memory until then.
    func watch(_ context: AuthenticationContext) {
        let starts = state.withLock { state in
            if !state.entries.contains(where: { $0.context === context }) { state.entries.append(Entry(context: context)) }
            defer { state.isWatcherRunning = true }
            return !state.isWatcherRunning
        }
        if starts, !ExpiryWatcher.start(watching: self) { state.withLock { $0.isWatcherRunning = false } }
    }

    func look() -> Bool {
        let contexts = state.withLock { state in
            state.entries.removeAll { $0.context == nil }
            return state.entries.compactMap(\.context)
        }
        for context in contexts where !context.removeExpired() {
            state.withLock { state in
                // Something may have been released to it since the look.
                if !context.holdsReleases { state.entries.removeAll { $0.context === context } }
            }
        }
        return state.withLock { state in
            if state.entries.isEmpty { state.isWatcherRunning = false }
            return !state.entries.isEmpty
        }
    }
}

/// Keys in memory that have an end which nobody announces.
protocol ExpiringSecrets: AnyObject, Sendable {
    /// Lets go of what has come to its end; false when nothing is held, and then the watcher is taken to end.
    func look() -> Bool
}

/// The thread that lets go of keys in memory when their time is up or their store was locked, also in an idle process.
///
/// It starts with the first key and ends after the last.
enum ExpiryWatcher {
    /// Between two looks: with the time that a look takes, less than half a second.
    private static let pauseNanoseconds = 400_000_000

    /// False when the system has no thread to give.
    static func start(watching keys: any ExpiringSecrets) -> Bool {
        // Signals are the program's: the thread inherits a mask that takes none. Both sets are ours.
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
        // Nobody waits for its end.
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
        while keys.look() {
            var pause = timespec(tv_sec: 0, tv_nsec: pauseNanoseconds)
            // Every signal is masked: it does not return early.
            _ = unsafe nanosleep(&pause, nil)
        }
    }
}
