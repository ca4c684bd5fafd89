// SPDX-License-Identifier: Apache-2.0
package import Keybag
package import KeychainCore
internal import KeychainStore

/// An open store with its keybag, its device protector, and its key holder.
///
/// A class, so that each call of `LocalKeychain` retains one reference instead of copying six values.
package final class OpenKeychain: Sendable {
    package let store: any ItemStore
    package let keybag: OpenKeybag
    package let keychain: SealedKeychain
    package let protector: any DeviceProtector
    package let holder: any KeyHolder

    package init(
        store: any ItemStore, keybag: OpenKeybag, keychain: SealedKeychain, protector: any DeviceProtector, holder: any KeyHolder
    ) {
        self.store = store
        self.keybag = keybag
        self.keychain = keychain
        self.protector = protector
        self.holder = holder
    }

    /// Returns the store as a file.
    ///
    /// Throws `.unimplemented` for a keychain in memory.
    func fileStore() throws(KeychainFailure) -> SQLiteItemStore {
        guard let store = store as? SQLiteItemStore else { throw KeychainFailure.requiresFile() }
        return store
    }

    /// Returns memory that only makes the next call faster, as `SQLiteItemStore.releaseMemoryIfUnused` does.
    func releaseMemoryIfUnused() -> Bool { (store as? SQLiteItemStore)?.releaseMemoryIfUnused() ?? false }

    /// Returns a copy of the device secret.
    ///
    /// Throws a failure that requires reopening if another process has moved the keychain to another protector.
    func deviceSecret() throws(KeychainFailure) -> SecretBytes {
        do throws(KeychainFailure) {
            return try protector.deviceSecret(for: keybag.storeID)
        } catch {
            guard (try? isOutdated()) == true else { throw error }
            throw SealedKeychain.keybagChanged
        }
    }

    /// The TPM that protects this keychain; nil for other protectors.
    var device: (any SealingDevice)? { (protector as? TPMProtector)?.device }

    /// Returns all class keys and the presence key pair.
    ///
    /// Throws `.authFailed` for a wrong passcode, or if none is set.
    func unlockedKeys(passcode: borrowing Passcode) throws(KeychainFailure) -> UnlockedKeys {
        try keybag.unlockedKeys(passcode: passcode, deviceSecret: try deviceSecret(), device: device)
    }

    /// Returns the keychain with everything that the passcode releases.
    func keychain(openingWith keys: UnlockedKeys) throws(KeychainFailure) -> SealedKeychain {
        let keychain = keychain.with(keys: keys)
        guard keys.hasPresenceKeyPair else { return keychain }
        return keychain.with(constraintKeys: ConstraintKeys(presence: try keys.presenceRelease(for: Set(ItemAccessibility.allCases))))
    }

    /// Whether another process has changed the keybag since this keychain was opened.
    ///
    /// Throws if the store cannot be read.
    func isOutdated() throws(KeychainFailure) -> Bool {
        try storedState().keybagGeneration != keybag.keybagGeneration
    }

    /// Returns the highest generation of a class key that items name, if the keybag lacks it: an older keybag may have been accepted.
    func newestGenerationInRows() throws(KeychainFailure) -> UInt32 {
        try keychain.newestGenerationInRows(above: keybag.currentPasscodeGeneration)
    }

    /// Throws `.interactionNotAllowed` unless the keychain is unlocked.
    func requireUnlocked() throws(KeychainFailure) {
        guard try keybag.lockState(at: store.lockEpoch()) == .unlocked else {
            throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first", cause: .locked)
        }
    }

    /// Returns the lock state, whether a passcode is set, the key holder, and the auto-lock time.
    func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        let lockEpoch = try store.lockEpoch()
        let state = try keybag.lockState(at: lockEpoch)
        // A replaced keybag also empties the holder. That is not a lock.
        if state != .unlocked, try isOutdated() { throw SealedKeychain.keybagChanged }
        return SessionStatus(
            state: state, isPasscodeSet: keybag.isPasscodeSet, holder: holder.kind, autoLock: try keybag.autoLock(at: lockEpoch))
    }

    /// Returns the keybag generation and the lock epoch that are in the store now.
    func storedState() throws(KeychainFailure) -> (keybagGeneration: UInt64, lockEpoch: LockEpoch) {
        try store.read { reading throws(KeychainFailure) in (try reading.keybag().generation, try reading.lockEpoch()) }
    }
}

extension KeychainFailure {
    /// The failure of an operation on the keychain's file, for a keychain in memory.
    static func requiresFile() -> KeychainFailure {
        KeychainFailure(.unimplemented, "this keychain is in memory and has no file")
    }
}
