// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// Setting, changing, and removing the passcode.
///
/// Each is one transaction that replaces the keybag. Resealing the rows under older class keys follows and may be interrupted at any
/// point: the next unlock continues.
extension LocalKeychain {
    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try backend.recordNewPasscode(passcode)
        let policy = try backend.passcodePolicy()
        try policy.validate(passcode)
        try perform(creating: true) { opened throws(KeychainFailure) in
            if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
            guard !opened.keybag.isPasscodeSet else {
                throw KeychainFailure(.duplicateItem, "a passcode is set already: change it instead")
            }
            let epoch = try opened.store.lockEpoch()
            let deviceSecret = try opened.deviceSecret()
            let change = try opened.keybag.settingPasscode(
                passcode, cost: policy.cost, newestGeneration: try opened.newestGenerationInRows(), deviceSecret: deviceSecret,
                device: opened.device)
            try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch)
            rewrapAfterwards(change.keys, autoLock, lockEpoch: epoch, deviceSecret)
        }
        biometry?.passcodeWasEntered()
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        try backend.recordNewPasscode(new)
        let policy = try backend.passcodePolicy()
        try performPasscodeOperation { opened throws(KeychainFailure) in
            let epoch = try opened.store.lockEpoch()
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.unlockedKeys(passcode: current)
            // Checked after the current passcode, so that only a caller who knows the passcode learns the rules.
            try policy.validate(new)
            let change = try opened.keybag.changingPasscode(
                of: keys, to: new, cost: policy.cost, rotatingKeys: rotatingKeys,
                newestGeneration: rotatingKeys ? try opened.newestGenerationInRows() : 0, deviceSecret: deviceSecret, device: opened.device)
            try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch)
            rewrapAfterwards(change.keys, autoLock, lockEpoch: epoch, deviceSecret)
        }
        biometry?.passcodeWasEntered()
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try performPasscodeOperation { opened throws(KeychainFailure) in
            let keys = try opened.unlockedKeys(passcode: passcode)
            return try opened.keychain(openingWith: keys).passcodeRemoval()
        }
    }

    package func removePasscode(
        _ passcode: borrowing Passcode, deleting removal: PasscodeRemoval
    ) throws(KeychainFailure) {
        try performPasscodeOperation { opened throws(KeychainFailure) in
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.unlockedKeys(passcode: passcode)
            let change = try opened.keybag.removingPasscode(of: keys, deviceSecret: deviceSecret)
            let keychain = try opened.keychain(openingWith: keys)
            try keychain.write { writing throws(KeychainFailure) in
                try keychain.delete(removal, in: writing)
                try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
            }
            close(opened)
            // Best effort: keys that remain held need no protection any longer, since the keybag now releases them without a passcode.
            for slot in KeyHolderSlot.ofClassKeys { try? opened.holder.remove(slot) }
        }
    }

    /// Completes an earlier change: reseals rows under older class keys, raises the cost of the passcode to the policy's, and adds a
    /// missing presence key pair.
    func finishChange(
        _ keys: UnlockedKeys, of unlocked: OpenKeychain, _ passcode: borrowing Passcode, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let deviceSecret = try unlocked.deviceSecret()
        guard let keys = try rewrap(unlocked, keys, autoLock, lockEpoch: lockEpoch, deviceSecret) else { return }
        let opened = try current(creating: false)
        guard opened.keybag.keybagGeneration == keys.keybagGeneration, let stored = opened.keybag.passcodeCost else { return }
        // Last, so that an unreadable policy does not delay the rows.
        let cost = try backend.passcodePolicy().cost
        // Keybags of earlier versions have no presence key pair.
        guard stored.memoryByteCount < cost.memoryByteCount || !keys.hasPresenceKeyPair else { return }
        let raised = stored.memoryByteCount < cost.memoryByteCount ? cost : stored
        let change = try opened.keybag.changingPasscode(
            of: keys, to: passcode, cost: raised, rotatingKeys: false, deviceSecret: deviceSecret, device: opened.device)
        try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch)
        rewrapAfterwards(change.keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
    }

    /// Stores another keybag.
    ///
    /// The keys of the new keybag are held before it is stored, so that no process that notices the change finds the keychain locked.
    /// If the keybag was not stored, they are discarded. If that is unknown they stay: they are usable only if it was stored.
    ///
    /// Only `slots` of the class keys are filled. `isObsolete` runs in the transaction: if it returns true, nothing is stored and the
    /// failure requires reopening.
    func replaceKeybag(
        of opened: OpenKeychain, with change: KeybagChange, _ autoLock: AutoLock, lockEpoch: LockEpoch,
        slots: [KeyHolderSlot] = KeyHolderSlot.ofClassKeys,
        unless isObsolete: (any ItemWriting) throws(KeychainFailure) -> Bool = { _ in false }
    ) throws(KeychainFailure) {
        let held = try change.keys.map { keys throws(KeychainFailure) in
            try hold(keys, in: opened.holder, slots, autoLock, lockEpoch: lockEpoch)
        }
        do throws(KeychainFailure) {
            try opened.keychain.write { writing throws(KeychainFailure) in
                guard try !isObsolete(writing) else { throw SealedKeychain.keybagChanged }
                try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
            }
        } catch {
            if error.status != .inputOutput, !Self.isStored(change.document, in: opened) { held?.discard { _ in true } }
            throw error
        }
        close(opened)
        guard let held else { return }
        // If the store was locked meanwhile, the lock may have missed these keys. Discard those that it should have removed.
        let present = try? current(creating: false).storedState()
        held.discard { slot in present.map { !lockEpoch.isValid(for: slot, at: $0.lockEpoch) } ?? true }
        // Best effort: older keys open nothing that the new ones do not, and the next lock removes them.
        for slot in KeyHolderSlot.ofClassKeys { try? held.holder.removeOlder(slot) }
    }

    /// Whether another process has stored the same keybag: two processes that only drop unused keys write equal ones.
    private static func isStored(_ document: KeybagDocument, in opened: OpenKeychain) -> Bool {
        let stored = try? opened.store.read { reading throws(KeychainFailure) in try reading.keybag() }
        return stored?.copies.contains(document.encoded) ?? false
    }

    /// Reseals rows after a change of passcode, which is already durable.
    ///
    /// If this fails, the next unlock continues.
    private func rewrapAfterwards(
        _ keys: UnlockedKeys?, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) {
        do throws(KeychainFailure) {
            let opened = try current(creating: false)
            guard let keys, opened.keybag.keybagGeneration == keys.keybagGeneration else { return }
            _ = try rewrap(opened, keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
        } catch {
            EngineLog.warn("not every item is under the new class keys yet; the next unlock continues: \(error)")
        }
    }
}
