// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainStore

/// The way from one protector to another.
///
/// Order: the new secret durable (a key file under its provisional name; what a chip sealed goes into the keybag itself), then one
/// transaction that replaces the keybag, then the key file's final name, and last the old key file's end. Dying anywhere in
/// between leaves the old protector or the new one; what else is left opens nothing, and the next move takes it away.
extension LocalKeychain {
    typealias Opened = OpenedKeychain<SQLiteItemStore>

    private var keyFile: KeyFile { ProtectorSelection(configuration: configuration).keyFile }

    /// Moves what is open; `keys` and `passcode` are there exactly when a passcode is set.
    func move(
        _ opened: Opened, to kind: DeviceProtectorKind, keys: UnlockedKeys?, passcode: borrowing Passcode?, recoveryKey: RecoveryKey?
    ) throws(KeychainFailure) {
        let storeID = opened.store.storeID
        let lockEpoch = try opened.present().lockEpoch
        let (slots, autoLock) = try held(by: opened)
        let deviceSecret = try opened.deviceSecret()
        let new = try ProtectorSelection(configuration: configuration).newSecret(kind, for: storeID)
        let change = try opened.keybag.movingProtector(
            to: new.record, newDeviceSecret: new.shared.secret, deviceSecret: deviceSecret, keys: keys, passcode: passcode,
            device: new.device, recoveryKey: recoveryKey)
        // What is held from now on opens the new keybag alone, and whoever finds that it does not discards it.
        if kind == .tpm2 { TPMProtector.hold(new.shared.secret, of: storeID, in: opened.holder) }
        let setsAside = opened.keybag.document.protector.kind == .keyFile
        try access.replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch, slots: slots) { _ throws(KeychainFailure) in
            // Nobody else writes now, and the keybag is still the one that was read: of two moves at once, one is refused here.
            if kind == .keyFile {
                try PrivateDirectory.make(configuration.keyDirectory)
                try keyFile.prepareMove(new.shared.secret, for: storeID, setsAside: setsAside)
            }
            return false
        }
        finish(opened, kind)
    }

    /// The slots that are filled now, and how long they are to stay so: a move neither locks nor unlocks.
    func held(by opened: Opened) throws(KeychainFailure) -> ([KeyHolderSlot], AutoLock) {
        guard opened.keybag.isPasscodeSet else { return ([], .standard) }
        var slots: [KeyHolderSlot] = []
        let state = try opened.keybag.lockState()
        if state != .neverUnlocked { slots.append(.firstUnlock) }
        if state == .unlocked { slots.append(.unlocked) }
        return (slots, try opened.keybag.autoLock() ?? .standard)
    }

    /// The new protector is in force: what fails here is done by whoever opens the keychain, or by the next move.
    private func finish(_ opened: Opened, _ kind: DeviceProtectorKind) {
        do throws(KeychainFailure) {
            let storeID = opened.store.storeID
            if kind == .keyFile { try keyFile.confirm(for: storeID) } else { try keyFile.remove(for: storeID) }
            if kind != .tpm2 { try opened.holder.remove(.device) }
        } catch {
            EngineLog.warn("the keychain has its new protector, but something of the old one stays: \(error)")
        }
    }
}
