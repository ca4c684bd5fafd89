// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// Setting, changing and removing the passcode.
///
/// Each is one transaction that replaces the keybag. What follows it (rows under older class keys) can stop anywhere: the next
/// unlock goes on.
extension KeychainAccess {
    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        let rules = try passcodePolicy()
        try rules.admit(passcode)
        try perform(creating: true) { opened throws(KeychainFailure) in
            if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
            guard !opened.keybag.isPasscodeSet else {
                throw KeychainFailure(.duplicateItem, "a passcode is set already: change it instead")
            }
            let epoch = try opened.present().lockEpoch
            let deviceSecret = try opened.deviceSecret()
            let change = try opened.keybag.settingPasscode(
                passcode, cost: rules.cost, deviceSecret: deviceSecret, device: opened.device)
            try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch)
            rewrapAfterwards(change.keys, autoLock, lockEpoch: epoch, deviceSecret)
        }
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        let rules = try passcodePolicy()
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let epoch = try opened.present().lockEpoch
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.unlockedKeys(passcode: current)
            // Asked after the current passcode: what the rules are is nobody's business without it.
            try rules.admit(new)
            let change = try opened.keybag.changingPasscode(
                of: keys, to: new, cost: rules.cost, rotatingKeys: rotatingKeys, deviceSecret: deviceSecret, device: opened.device)
            try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch)
            rewrapAfterwards(change.keys, autoLock, lockEpoch: epoch, deviceSecret)
        }
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let keys = try opened.unlockedKeys(passcode: passcode)
            return try opened.keychain(openingWith: keys).passcodeRemoval()
        }
    }

    package func removePasscode(
        _ passcode: borrowing Passcode, deleting removal: PasscodeRemoval
    ) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.unlockedKeys(passcode: passcode)
            let change = try opened.keybag.removingPasscode(of: keys, deviceSecret: deviceSecret)
            let keychain = try opened.keychain(openingWith: keys)
            try keychain.write { writing throws(KeychainFailure) in
                try keychain.delete(removal, in: writing)
                try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
            }
            close(opened)
            // Nobody needs them any more. A holder that keeps them keeps what the keybag itself now gives out.
            for slot in KeyHolderSlot.ofClassKeys { try? opened.holder.remove(slot) }
        }
    }

    /// What an earlier change has left to do: rows under older class keys, then a cost that has risen since, or a presence key pair that is missing.
    func finish(
        _ keys: UnlockedKeys, of unlocked: Opened, _ passcode: borrowing Passcode, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let deviceSecret = try unlocked.deviceSecret()
        guard let keys = try rewrap(unlocked, keys, autoLock, lockEpoch: lockEpoch, deviceSecret) else { return }
        let opened = try current(creating: false)
        guard opened.keybag.keybagGeneration == keys.keybagGeneration, let stored = opened.keybag.passcodeCost else { return }
        // Asked for last: rows do not wait for a policy that can be read.
        let cost = try passcodePolicy().cost
        // A keybag from before there was a presence key pair gets one.
        guard stored.memoryByteCount < cost.memoryByteCount || !keys.hasPresenceKeyPair else { return }
        let raised = stored.memoryByteCount < cost.memoryByteCount ? cost : stored
        let change = try opened.keybag.changingPasscode(
            of: keys, to: passcode, cost: raised, rotatingKeys: false, deviceSecret: deviceSecret, device: opened.device)
        try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch)
        rewrapAfterwards(change.keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
    }

    /// Stores another keybag, and holds its keys from before that on: nobody who notices the change finds the keychain locked.
    ///
    /// Of the slots for class keys `slots` are filled. Nothing is held for a keybag that was not stored; where that cannot be said, what is held is of use only if it was.
    func replaceKeybag(
        of opened: Opened, with change: KeybagChange, _ autoLock: AutoLock, lockEpoch: LockEpoch,
        slots: [KeyHolderSlot] = KeyHolderSlot.ofClassKeys,
        unless isObsolete: (any ItemWriting) throws(KeychainFailure) -> Bool = { _ in false }
    ) throws(KeychainFailure) {
        let held = try change.keys.map { keys throws(KeychainFailure) in
            try give(keys, to: opened.holder, slots, autoLock, lockEpoch: lockEpoch)
        }
        do throws(KeychainFailure) {
            try opened.keychain.write { writing throws(KeychainFailure) in
                guard try !isObsolete(writing) else { throw SealedKeychain.keybagChanged }
                try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
            }
        } catch {
            if error.status != .inputOutput, !Self.isStored(change.document, in: opened) { held?.takeBack { _ in true } }
            throw error
        }
        close(opened)
        guard let held else { return }
        // A lock that came meanwhile has emptied the holder before this was given to it, or will do so. Nobody is given it.
        let present = try? current(creating: false).present()
        held.takeBack { slot in present.map { !lockEpoch.keeps(slot, at: $0.lockEpoch) } ?? true }
        // What was held for the keybag before opens nothing more than what is held now; if it stays, the next lock takes it.
        for slot in KeyHolderSlot.ofClassKeys { try? held.holder.removeOlder(slot) }
    }

    /// Whether another process has stored the very same keybag, as two do that only leave out what nothing uses any more.
    private static func isStored(_ document: KeybagDocument, in opened: Opened) -> Bool {
        let stored = try? opened.store.read { reading throws(KeychainFailure) in try reading.keybag() }
        return stored?.copies.contains(document.encoded) ?? false
    }

    /// The passcode is in force by now: what fails here is done by the next unlock.
    private func rewrapAfterwards(
        _ keys: UnlockedKeys?, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) {
        do throws(KeychainFailure) {
            let opened = try current(creating: false)
            guard let keys, opened.keybag.keybagGeneration == keys.keybagGeneration else { return }
            _ = try rewrap(opened, keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
        } catch {
            EngineLog.warn("not every item is under the new class keys yet, the next unlock goes on: \(error)")
        }
    }
}
