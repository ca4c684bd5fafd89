// SPDX-License-Identifier: Apache-2.0
package import Keybag
package import KeychainCore

/// What an open keychain consists of.
package struct OpenKeychain<Store: ItemStore>: Sendable {
    package let store: Store
    package let keybag: OpenKeybag
    package let keychain: SealedKeychain
    package let protector: any DeviceProtector
    package let holder: any KeyHolder
    /// Whether the keybag in use is the one that the store's last change left; without it nothing can be written.
    package let isKeybagCurrent: Bool

    package init(
        store: Store, keybag: OpenKeybag, keychain: SealedKeychain, protector: any DeviceProtector, holder: any KeyHolder,
        isKeybagCurrent: Bool
    ) {
        self.store = store
        self.keybag = keybag
        self.keychain = keychain
        self.protector = protector
        self.holder = holder
        self.isKeybagCurrent = isKeybagCurrent
    }

    /// The device secret, for as long as the caller keeps it.
    ///
    /// Throws, calling for reopening, when another process has moved the keychain to another protector since.
    func deviceSecret() throws(KeychainFailure) -> SecretBytes {
        do throws(KeychainFailure) {
            return try protector.deviceSecret(for: keybag.storeID)
        } catch {
            guard (try? isOutdated()) == true else { throw error }
            throw SealedKeychain.keybagChanged
        }
    }

    /// The chip that protects this keychain, if one does.
    var device: (any SealingDevice)? { (protector as? TPMProtector)?.device }

    /// All class keys, and what else the passcode releases.
    ///
    /// Throws `.authFailed` for a wrong passcode or when none is set.
    func unlockedKeys(passcode: borrowing Passcode) throws(KeychainFailure) -> UnlockedKeys {
        try keybag.unlockedKeys(passcode: passcode, deviceSecret: try deviceSecret(), device: device)
    }

    /// The keychain with everything that a passcode releases.
    func keychain(openingWith keys: UnlockedKeys) throws(KeychainFailure) -> SealedKeychain {
        let keychain = keychain.with(keys: keys)
        guard keys.hasPresenceKeyPair else { return keychain }
        return keychain.with(constraintKeys: ConstraintKeys(presence: try keys.presenceRelease(for: Set(Accessibility.allCases))))
    }

    /// Whether another process has changed the keybag since this was opened.
    ///
    /// Throws when the store cannot tell.
    func isOutdated() throws(KeychainFailure) -> Bool {
        guard isKeybagCurrent else { return false }
        return try present().keybagGeneration != keybag.keybagGeneration
    }

    /// State, passcode, holder and time of the lock.
    func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        let state = try keybag.lockState()
        // What was held for this keybag goes when another one takes its place, and that says nothing of a lock.
        if state != .unlocked, try isOutdated() { throw SealedKeychain.keybagChanged }
        return SessionStatus(
            state: state, isPasscodeSet: keybag.isPasscodeSet, holder: holder.kind, autoLock: try keybag.autoLock())
    }

    /// What the store says now.
    func present() throws(KeychainFailure) -> (keybagGeneration: UInt64, lockEpoch: LockEpoch) {
        try store.read { reading throws(KeychainFailure) in (try reading.keybag().generation, try reading.lockEpoch()) }
    }
}
