// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// The contexts of this process that carry something: a thread lets them drop it when the keychain locks or their time is up, also
/// while nobody uses them.
final class HeldContexts: WatchedKeys {
    static let ofThisProcess = HeldContexts()

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
        if starts, !ProcessMemoryWatcher.start(watching: self) { state.withLock { $0.isWatcherRunning = false } }
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
