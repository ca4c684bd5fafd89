// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// Remembers that a keychain was seen unlocked.
final class SeenUnlocked: Sendable {
    private let isSeen: Mutex<Bool>

    init(_ isSeen: Bool) {
        self.isSeen = Mutex(isSeen)
    }

    /// Whether nothing speaks of a lock since.
    func allows(_ state: LockState) -> Bool {
        isSeen.withLock { isSeen in
            if state == .unlocked { isSeen = true }
            return state == .unlocked || !isSeen
        }
    }
}
