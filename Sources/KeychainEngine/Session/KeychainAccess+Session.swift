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
            try Self.hold(keys, by: opened.holder, autoLock, lockEpoch: epoch)
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
            try opened.holder.remove(.unlocked)
            if extent == .everything { try opened.holder.remove(.firstUnlock) }
            do throws(KeychainFailure) {
                try opened.store.advanceLockEpoch(extent)
            } catch {
                throw error.naming("locked, but programs that keep keys in their own memory could not be told")
            }
        }
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set") }
            let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            guard try opened.keybag.lockState() == .unlocked, let held = try opened.holder.load(.unlocked, for: .inspection) else {
                throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first")
            }
            try opened.holder.hold(held.secret, in: .unlocked, timeoutSeconds: autoLock.seconds, lockEpoch: epoch)
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

    static func hold(
        _ keys: UnlockedKeys, by holder: any KeyHolder, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        try holder.hold(keys.payload(for: .firstUnlock), in: .firstUnlock, timeoutSeconds: nil, lockEpoch: lockEpoch)
        try holder.hold(keys.payload(for: .unlocked), in: .unlocked, timeoutSeconds: autoLock.seconds, lockEpoch: lockEpoch)
    }
}
