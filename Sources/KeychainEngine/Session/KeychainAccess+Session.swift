// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// State, unlocking and locking.
extension KeychainAccess {
    /// A keychain that nobody has made yet is open and has no passcode.
    package func sessionStatus(holderOfNewKeychain: KeyHolderKind) throws(KeychainFailure) -> SessionStatus {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                SessionStatus(
                    state: try opened.keybag.lockState(), isPasscodeSet: opened.keybag.isPasscodeSet, holder: opened.holder.kind,
                    autoLock: try opened.keybag.autoLock())
            }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return SessionStatus(state: .unlocked, isPasscodeSet: false, holder: holderOfNewKeychain, autoLock: nil)
        }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            // Before the passcode is checked: a lock that comes meanwhile counts.
            let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.keybag.unlockedKeys(passcode: passcode, deviceSecret: deviceSecret)
            try hold(keys, of: opened, autoLock, lockEpoch: epoch)
            do throws(KeychainFailure) {
                try finish(keys, of: opened, passcode, autoLock, lockEpoch: epoch)
            } catch {
                // The keychain is unlocked all the same, and the next unlock tries again.
                EngineLog.warn("what a change of keys has left to do could not be done: \(error)")
            }
        }
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else {
                throw KeychainFailure(.authFailed, "no passcode is set, so nothing can be locked")
            }
            // The keys first: whatever happens then, they are gone.
            try Self.removeKeys(extent, from: opened.holder)
            do throws(KeychainFailure) {
                try opened.store.advanceLockEpoch(extent)
            } catch {
                throw error.naming("locked, but programs that keep keys in their own memory could not be told").advising(.lockAgain)
            }
            // Once more: an unlock that began before may have put them back in the meantime. A later one counts this lock itself.
            try Self.removeKeys(extent, from: opened.holder)
        }
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set") }
            let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            guard try opened.keybag.lockState() == .unlocked, let held = try opened.holder.load(.unlocked, for: .inspection) else {
                throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first")
            }
            try fill([.unlocked], of: opened, opened.keybag.keybagGeneration, unlessLockedSince: epoch) { (slot) throws(KeychainFailure) in
                try opened.holder.hold(held.secret, in: slot, timeoutSeconds: autoLock.seconds, lockEpoch: epoch)
            }
        }
    }

    /// Runs `body` on a keychain whose keybag is the store's: a passcode may have come or gone since it was opened.
    func performOnCurrentKeybag<Result>(
        _ body: (Opened) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in
            if opened.isOutdated() { throw SealedKeychain.keybagChanged }
            return try body(opened)
        }
    }

    /// Gives the keys of an unlock to the holder, but for those that a lock has taken away since `lockEpoch`.
    ///
    /// Throws, calling for reopening, when the keybag is another one by now: its keys are to be held, and not these.
    func hold(
        _ keys: UnlockedKeys, of opened: Opened, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let slots: [KeyHolderSlot] = [.firstUnlock, .unlocked]
        try fill(slots, of: opened, keys.keybagGeneration, unlessLockedSince: lockEpoch) { (slot) throws(KeychainFailure) in
            let timeoutSeconds = slot == .unlocked ? autoLock.seconds : nil
            try opened.holder.hold(keys.payload(for: slot), in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
        }
    }

    /// Fills slots, and none that was locked since `lockEpoch`.
    ///
    /// The store is read before and after. A lock empties the slots before and after it is counted, so either of both sees the
    /// other, and the lock stays. A change of the keybag stores it before its keys are held, so keys of an older one are not left
    /// in their place.
    private func fill(
        _ slots: [KeyHolderSlot], of opened: Opened, _ keybagGeneration: UInt64, unlessLockedSince lockEpoch: LockEpoch,
        _ body: (KeyHolderSlot) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        let expected = opened.isKeybagCurrent ? keybagGeneration : nil
        let before = try present()
        if let expected, before.keybagGeneration != expected { throw SealedKeychain.keybagChanged }
        for slot in slots where lockEpoch.keeps(slot, at: before.lockEpoch) { try body(slot) }
        let after: Present
        do throws(KeychainFailure) {
            after = try present()
        } catch {
            // Whether a lock came cannot be said.
            for slot in slots { try opened.holder.remove(slot) }
            throw error
        }
        for slot in slots where !lockEpoch.keeps(slot, at: after.lockEpoch) { try opened.holder.remove(slot) }
        // What is held for another keybag is refused by whoever loads it, so it can stay; the right keys may be there already.
        if let expected, after.keybagGeneration != expected { throw SealedKeychain.keybagChanged }
    }

    private struct Present {
        let lockEpoch: LockEpoch
        let keybagGeneration: UInt64
    }

    /// Not of the keychain that a call began with: that may have been closed since.
    private func present() throws(KeychainFailure) -> Present {
        try current(creating: false).store.read { reading throws(KeychainFailure) in
            Present(lockEpoch: try reading.lockEpoch(), keybagGeneration: try reading.keybag().generation)
        }
    }

    private static func removeKeys(_ extent: LockExtent, from holder: any KeyHolder) throws(KeychainFailure) {
        try holder.remove(.unlocked)
        if extent == .everything { try holder.remove(.firstUnlock) }
    }
}
