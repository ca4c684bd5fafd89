// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// The lock state, unlocking, and locking.
extension LocalKeychain: KeychainSessionProviding {
    /// The state of a keychain that does not exist yet is unlocked, without a passcode, if it could be created.
    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.sessionStatus() }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            try addingContext { () throws(KeychainFailure) in try backend.requireProtectorForNewKeychain() }
            return SessionStatus(state: .unlocked, isPasscodeSet: false, holder: backend.newKeychainHolder, autoLock: nil)
        }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try performPasscodeOperation { opened throws(KeychainFailure) in
            // Read before the passcode is checked, so that a lock in the meantime is detected.
            let epoch = try opened.store.lockEpoch()
            let keys = try opened.unlockedKeys(passcode: passcode)
            try hold(keys, of: opened, autoLock, lockEpoch: epoch)
            do throws(KeychainFailure) {
                try finishChange(keys, of: opened, passcode, autoLock, lockEpoch: epoch)
            } catch {
                // The keychain is unlocked nevertheless, and the next unlock tries again.
                EngineLog.warn(
                    error.subject == .policy
                        ? "\(error.reason); the keychain is unlocked, and until the file is corrected or removed its passcode keeps its "
                            + "present cost, and no other passcode can be set"
                        : "an earlier change of passcode could not be completed: \(error)")
            }
            backend.announceUnlock(of: opened)
        }
        biometry?.passcodeWasEntered()
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        // First: opening a damaged keychain may take long, and the person may interrupt it.
        backend.removeHeldKeys(extent)
        do throws(KeychainFailure) {
            try performPasscodeOperation { opened throws(KeychainFailure) in
                guard opened.keybag.isPasscodeSet else {
                    throw KeychainFailure(.authFailed, "no passcode is set, so nothing can be locked", refusal: .passcodeNotSet)
                }
                try Self.lock(extent, opened.holder, opened.store)
            }
        } catch {
            guard error.refusal != .passcodeNotSet, error.remedy != .lockAgain else { throw error }
            // Held keys must be removed even if the keychain can no longer be opened. The call still fails.
            let isLocked = backend.lockWithoutOpening(extent)
            throw error.addingContext(
                isLocked
                    ? "its keys were removed from the kernel's keyring, but the lock could not be completed"
                    : "the keychain may still be unlocked"
            ).withRemedy(.lockAgain)
        }
    }

    /// Empties the holder and advances the lock epoch.
    ///
    /// Runs every step even if one fails, and throws the first failure.
    ///
    /// The keys are removed before and after the epoch advances: an unlock that began earlier may hold keys in between. Keys that such
    /// an unlock holds even later have an earlier epoch. Every call that begins after the lock reads the new epoch, in the session in
    /// which it uses the keys or before it, so no such call uses them. A call that overlaps the lock may complete as if before it.
    static func lock(_ extent: LockExtent, _ holder: any KeyHolder, _ store: any ItemStore) throws(KeychainFailure) {
        var failure: KeychainFailure?
        func attempt(_ step: () throws(KeychainFailure) -> Void) {
            do throws(KeychainFailure) { try step() } catch { failure = failure ?? error }
        }
        for slot in extent.slots { attempt { () throws(KeychainFailure) in try holder.remove(slot) } }
        attempt { () throws(KeychainFailure) in
            do throws(KeychainFailure) {
                try store.advanceLockEpoch(extent)
            } catch {
                throw error.addingContext("locked, but programs that keep keys in their own memory could not be notified")
                    .withRemedy(.lockAgain)
            }
        }
        for slot in extent.slots { attempt { () throws(KeychainFailure) in try holder.remove(slot) } }
        if let failure { throw failure }
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try performPasscodeOperation { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet) }
            let epoch = try opened.store.lockEpoch()
            let holder = opened.holder.forKeybag(opened.keybag.identity)
            guard try opened.keybag.lockState(at: epoch) == .unlocked,
                let held = try holder.load(.unlocked, for: .inspection, lockEpoch: epoch)
            else {
                throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first", cause: .locked)
            }
            let ticket = try holder.hold(held.secret, in: .unlocked, timeoutSeconds: autoLock.seconds, lockEpoch: held.lockEpoch)
            try discardIfOutdated(
                HeldTickets(holder: holder, tickets: [.unlocked: ticket]), of: opened,
                generation: opened.keybag.keybagGeneration, lockEpoch: epoch)
        }
    }

    /// Runs `body` as `performOnCurrentKeybag` does; throws `.authFailed` if there is no keychain, since it then has no passcode.
    func performPasscodeOperation<Result>(
        _ body: (OpenKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag(body)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            throw KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet", refusal: .passcodeNotSet)
        }
    }

    // MARK: Holding keys

    /// Stores keys in the holder of their keybag, and discards them if the store was locked or its keybag replaced in the meantime.
    ///
    /// Throws a failure that requires reopening if the keybag was replaced: these keys do not unlock the new one.
    private func hold(
        _ keys: UnlockedKeys, of opened: OpenKeychain, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let held = try hold(keys, in: opened.holder, KeyHolderSlot.ofClassKeys, autoLock, lockEpoch: lockEpoch)
        try discardIfOutdated(held, of: opened, generation: keys.keybagGeneration, lockEpoch: lockEpoch)
    }

    /// Discards held keys if the store was locked or its keybag replaced since `lockEpoch` was read.
    ///
    /// Throws a failure that requires reopening if the keybag was replaced.
    private func discardIfOutdated(
        _ held: HeldTickets, of opened: OpenKeychain, generation: UInt64, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let present: (keybagGeneration: UInt64, lockEpoch: LockEpoch)
        do throws(KeychainFailure) {
            present = try current(creating: false).storedState()
        } catch {
            // The store may have been locked in the meantime.
            held.discard { _ in true }
            throw error
        }
        held.discard { !lockEpoch.isValid(for: $0, at: present.lockEpoch) }
        guard present.keybagGeneration == generation else {
            held.discard { _ in true }
            throw SealedKeychain.keybagChanged
        }
    }

    /// Holds keys in all of the slots, or in none.
    func hold(
        _ keys: UnlockedKeys, in holder: any KeyHolder, _ slots: [KeyHolderSlot], _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldTickets {
        let holder = holder.forKeybag(keys.keybagIdentity)
        var held = HeldTickets(holder: holder)
        do throws(KeychainFailure) {
            for slot in slots {
                held.tickets[slot] = try holder.hold(
                    keys.payload(for: slot, at: lockEpoch), in: slot, timeoutSeconds: slot == .unlocked ? autoLock.seconds : nil,
                    lockEpoch: lockEpoch)
            }
        } catch {
            held.discard { _ in true }
            throw error
        }
        return held
    }
}

/// The secrets that one unlock has stored in a holder.
struct HeldTickets {
    let holder: any KeyHolder
    var tickets: [KeyHolderSlot: UInt64] = [:]

    /// Discards these secrets in the slots that match, but not secrets with which another unlock has replaced them.
    func discard(where matches: (KeyHolderSlot) -> Bool) {
        for (slot, ticket) in tickets where matches(slot) { holder.discard(slot, ticket: ticket) }
    }
}
