// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// Setting, changing and removing the passcode.
///
/// Each is one transaction that replaces the keybag. What follows it (rows under older class keys) can stop anywhere: the next
/// unlock goes on.
extension KeychainAccess {
    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        let rules = try passcodeRules()
        try rules.admit(passcode)
        try perform(creating: true) { opened throws(KeychainFailure) in
            if opened.isOutdated() { throw SealedKeychain.keybagChanged }
            guard !opened.keybag.isPasscodeSet else {
                throw KeychainFailure(.duplicateItem, "a passcode is set already: change it instead")
            }
            let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            let deviceSecret = try opened.deviceSecret()
            let change = try opened.keybag.settingPasscode(passcode, cost: rules.cost, deviceSecret: deviceSecret)
            try replaceKeybag(of: opened, with: change)
            try becomeUnlocked(change.keys, opened, autoLock, lockEpoch: epoch, deviceSecret)
        }
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        let rules = try passcodeRules()
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.keybag.unlockedKeys(passcode: current, deviceSecret: deviceSecret)
            // Asked after the current passcode: what the rules are is nobody's business without it.
            try rules.admit(new)
            let change = try opened.keybag.changingPasscode(
                of: keys, to: new, cost: rules.cost, rotatingKeys: rotatingKeys, deviceSecret: deviceSecret)
            try replaceKeybag(of: opened, with: change)
            try becomeUnlocked(change.keys, opened, autoLock, lockEpoch: epoch, deviceSecret)
        }
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let keys = try opened.keybag.unlockedKeys(passcode: passcode, deviceSecret: try opened.deviceSecret())
            return try opened.keychain.with(keys: keys).passcodeRemoval()
        }
    }

    package func removePasscode(
        _ passcode: borrowing Passcode, deleting removal: PasscodeRemoval
    ) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let deviceSecret = try opened.deviceSecret()
            let keys = try opened.keybag.unlockedKeys(passcode: passcode, deviceSecret: deviceSecret)
            let change = try opened.keybag.removingPasscode(of: keys, deviceSecret: deviceSecret)
            let keychain = opened.keychain.with(keys: keys)
            try keychain.write { writing throws(KeychainFailure) in
                try keychain.delete(removal, in: writing)
                try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
            }
            close(opened)
            // Nobody needs them any more. A holder that keeps them keeps what the keybag itself now gives out.
            for slot in KeyHolderSlot.allCases { try? opened.holder.remove(slot) }
        }
    }

    /// What an earlier change has left to do: a cost that has risen since, rows under older class keys.
    func finish(
        _ keys: UnlockedKeys, of opened: Opened, _ passcode: borrowing Passcode, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let deviceSecret = try opened.deviceSecret()
        let cost = try passcodeRules().cost
        if let stored = opened.keybag.passcodeCost, stored.memoryByteCount < cost.memoryByteCount {
            let change = try opened.keybag.changingPasscode(
                of: keys, to: passcode, cost: cost, rotatingKeys: false, deviceSecret: deviceSecret)
            try replaceKeybag(of: opened, with: change)
            return try becomeUnlocked(change.keys, opened, autoLock, lockEpoch: lockEpoch, deviceSecret)
        }
        guard opened.keybag.holdsOlderGenerations else { return }
        try rewrap(opened, keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
    }

    private func replaceKeybag(of opened: Opened, with change: KeybagChange) throws(KeychainFailure) {
        try opened.keychain.write { writing throws(KeychainFailure) in
            try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
        }
        // Also when what follows fails: this keybag is not the store's any more.
        close(opened)
    }

    /// The new keys are held at once, so that other processes go on; then the rows under older ones get their turn.
    ///
    /// The passcode is in force by now, so nothing that fails here may look as if it were not.
    private func becomeUnlocked(
        _ keys: UnlockedKeys?, _ replaced: Opened, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) {
        guard let keys else { return }
        do throws(KeychainFailure) {
            try hold(keys, of: replaced, autoLock, lockEpoch: lockEpoch)
        } catch {
            // Never one that calls for trying again: the passcode would be set or changed already.
            throw KeychainFailure(
                error.status, "the passcode is in force, but the keychain could not be unlocked with it: \(error.reason)",
                remedy: .unlockWithNewPasscode)
        }
        do throws(KeychainFailure) {
            let opened = try current(creating: false)
            guard opened.keybag.keybagGeneration == keys.keybagGeneration else { return }
            try rewrap(opened, keys, autoLock, lockEpoch: lockEpoch, deviceSecret)
        } catch {
            EngineLog.warn("not every item is under the new class keys yet, the next unlock goes on: \(error)")
        }
    }

    private func rewrap(
        _ opened: Opened, _ keys: UnlockedKeys, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) {
        let keychain = opened.keychain.with(keys: keys)
        var number: Int64? = 0
        while let after = number {
            number = try keychain.rewrapBatch(after: after, currentGeneration: opened.keybag.currentPasscodeGeneration).lastNumber
        }
        guard opened.keybag.holdsOlderGenerations else { return }
        let inUse = try opened.store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
        let change = try opened.keybag.droppingGenerations(notIn: inUse, of: keys, deviceSecret: deviceSecret)
        guard let change, let remaining = change.keys else { return }
        try keychain.write { writing throws(KeychainFailure) in
            // Looked at again while nobody else writes: a key that is still needed must never go.
            for id in try writing.classKeysInUse() where !inUse.contains(id) {
                guard try keys.currentGeneration(for: id.accessibility) == id.generation else { throw SealedKeychain.keybagChanged }
            }
            try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
        }
        close(opened)
        try hold(remaining, of: opened, autoLock, lockEpoch: lockEpoch)
    }
}
