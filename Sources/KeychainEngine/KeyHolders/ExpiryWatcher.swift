// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// The authentication contexts of this process that hold released keys.
///
/// A background thread removes the keys when the keychain is locked or they expire, even while no call uses the contexts.
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
        for context in contexts where !context.removeExpired() {
            state.withLock { state in
                // Another call may have released keys to it in the meantime.
                if !context.holdsReleases { state.entries.removeAll { $0.context === context } }
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
    private static let pauseNanoseconds: UInt64 = 400_000_000

    /// Returns false if the system cannot create a thread.
    static func start(watching keys: any ExpiringSecrets) -> Bool {
        BackgroundThread.start {
            while keys.removeExpired() { MonotonicClock.sleep(nanoseconds: pauseNanoseconds) }
        }
    }
}
