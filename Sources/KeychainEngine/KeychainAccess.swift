// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import Synchronization

/// The way to an open keychain: opens it at the first call, and anew when the store or its keybag changed beneath.
package final class KeychainAccess<Store: ItemStore>: Sendable {
    package typealias Opened = OpenedKeychain<Store>

    private let opening: @Sendable (_ creating: Bool) throws(KeychainFailure) -> Opened
    private let closing: @Sendable (Opened) -> Void
    private let opened = Mutex<Opened?>(nil)
    let passcodeRules: @Sendable () throws(KeychainFailure) -> PasscodePolicy
    let prompting: Prompting
    package let prompts = PromptTurn<PromptKey>()

    /// Opens nothing yet.
    ///
    /// `opening` throws `.itemNotFound` where there is no keychain and none may be made: then nothing was ever stored.
    package init(
        passcodeRules: @escaping @Sendable () throws(KeychainFailure) -> PasscodePolicy, prompting: Prompting,
        opening: @escaping @Sendable (_ creating: Bool) throws(KeychainFailure) -> Opened,
        closing: @escaping @Sendable (Opened) -> Void
    ) {
        self.passcodeRules = passcodeRules
        self.prompting = prompting
        self.opening = opening
        self.closing = closing
    }

    deinit {
        opened.withLock { opened in
            if let opened { closing(opened) }
        }
    }

    package var isOpen: Bool { opened.withLock { $0 != nil } }

    /// The open keychain.
    package func current(creating: Bool) throws(KeychainFailure) -> Opened {
        if let current = opened.withLock({ $0 }) { return current }
        // Opening reads files and may make a store, so it runs outside the lock; of two at once, one result is kept.
        let fresh = try opening(creating)
        return opened.withLock { opened in
            if let winner = opened { return winner }
            opened = fresh
            return fresh
        }
    }

    /// Runs `body` on the open keychain, and again when the store or its keybag is another one by now.
    ///
    /// Again and again while other processes change the keybag, though not for ever.
    package func perform<Result>(
        creating: Bool, _ body: (Opened) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        var deadlineNanoseconds: UInt64?
        while true {
            let opened = try current(creating: creating)
            do throws(KeychainFailure) {
                return try body(opened)
            } catch {
                let now = SystemMonotonicTime().nowNanoseconds()
                guard now < deadlineNanoseconds ?? .max, mayBeOtherwise(error, opened, isFirst: deadlineNanoseconds == nil) else {
                    throw error
                }
                deadlineNanoseconds = deadlineNanoseconds ?? now + Self.patienceNanoseconds
                close(opened)
            }
        }
    }

    /// Longer than any number of changes by others that do not go on for ever.
    private static var patienceNanoseconds: UInt64 { 5_000_000_000 }

    /// Whether the same call may be answered in another way once the keychain is opened anew.
    private func mayBeOtherwise(_ failure: KeychainFailure, _ opened: Opened, isFirst: Bool) -> Bool {
        if failure.callsForReopening {
            // After the first time there must be something new to open: another thread has closed this one, or the keybag changed.
            if isFirst || self.opened.withLock({ $0?.keybag !== opened.keybag }) { return true }
        } else if !Self.dependsOnKeybag(failure.status) {
            return false
        }
        return (try? opened.isOutdated()) ?? false
    }

    /// Answers that another keybag may change: a passcode may have been set, changed or removed by another process.
    private static func dependsOnKeybag(_ status: KeychainStatus) -> Bool {
        status == .interactionNotAllowed || status == .authFailed || status == .decode
    }

    /// Lets go of what is open, if anything is; the next call opens anew.
    func closeCurrent() {
        if let current = opened.withLock({ $0 }) { close(current) }
    }

    /// Lets go of what failed or is outdated, and of nothing that another thread has opened in its place since.
    func close(_ outdated: Opened) {
        opened.withLock { opened in
            if opened?.keybag === outdated.keybag { opened = nil }
        }
        closing(outdated)
    }
}
