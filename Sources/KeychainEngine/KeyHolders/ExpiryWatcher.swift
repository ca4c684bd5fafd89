// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// The contexts of this process that carry something: a thread lets them drop it when the keychain locks or their time is up, also
/// while nobody uses them.
final class ExpiringContexts: ExpiringSecrets {
    static let ofThisProcess = ExpiringContexts()

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
        for context in contexts where !context.look() {
            state.withLock { state in
                // Something may have been released to it since the look.
                if !context.isHolding { state.entries.removeAll { $0.context === context } }
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
    private static let pauseNanoseconds: UInt64 = 400_000_000

    /// False when the system has no thread to give.
    static func start(watching keys: any ExpiringSecrets) -> Bool {
        BackgroundThread.start {
            while keys.look() { MonotonicClock.sleep(nanoseconds: pauseNanoseconds) }
        }
    }
}
