// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// Locks keychains when the program keychain-watch says so, and all of them soon after it has ended.
final class SessionWatch: Sendable {
    private struct State {
        var watcherCount = 0
        /// How often the last watcher has ended.
        var absenceCount = 0
    }

    private let keychains: UserKeychains
    private let watcher: String
    private let timeoutSeconds: UInt32
    private let state = Mutex(State())

    /// `watcher` is the name of the user as whom keychain-watch runs.
    init(_ keychains: UserKeychains, watcher: String, timeoutSeconds: UInt32) {
        self.keychains = keychains
        self.watcher = watcher
        self.timeoutSeconds = timeoutSeconds
    }

    /// Throws `.missingEntitlement` unless a user may watch the sessions: keychain-watch, or root.
    func requireWatcher(_ user: UInt32) throws(KeychainFailure) {
        guard user != 0 else { return }
        do throws(Errno) {
            guard try UserDatabase.user(named: watcher) != user else { return }
        } catch {
            throw KeychainFailure(.notAvailable, "the user database cannot be read: \(error)", cause: .system(errno: error.rawValue))
        }
        throw KeychainFailure(.missingEntitlement, "only keychain-watch may do this, as the user \(watcher), and root")
    }

    func lock(ofUser user: UInt32?) throws(KeychainFailure) { try keychains.lock(ofUser: user) }

    func begin() { state.withLock { $0.watcherCount += 1 } }

    /// Locks all keychains unless there is a watcher again in time.
    func end() {
        let absence = state.withLock { state -> Int? in
            state.watcherCount -= 1
            state.absenceCount += 1
            return state.watcherCount == 0 ? state.absenceCount : nil
        }
        guard let absence else { return }
        let isStarted = BackgroundThread.start { [self] in
            MonotonicClock.sleep(nanoseconds: UInt64(timeoutSeconds) * 1_000_000_000)
            if state.withLock({ $0.watcherCount == 0 && $0.absenceCount == absence }) { lockAll() }
        }
        if !isStarted { lockAll() }
    }

    /// Best effort: a keychain that cannot be locked now loses its keys when they expire.
    private func lockAll() { try? keychains.lock(ofUser: nil) }
}
