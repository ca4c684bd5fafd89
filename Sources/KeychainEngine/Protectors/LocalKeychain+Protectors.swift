// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

extension LocalKeychain: ProtectorManaging {
    package func setProtector(
        _ kind: DeviceProtectorKind, passcode: borrowing Passcode?, creatingRecoveryKey: Bool
    ) throws(KeychainFailure) -> SharedSecretBytes? {
        try requiringExistingKeychain { () throws(KeychainFailure) in
            try access.performOnCurrentKeybag { opened throws(KeychainFailure) in
                if opened.protector.kind == kind, kind != .tpm2 {
                    try removeLeftover(of: opened)
                    return nil
                }
                let recoveryKey = creatingRecoveryKey && !opened.keybag.hasRecoveryKey ? try RecoveryKey() : nil
                let text = try Self.text(of: recoveryKey)
                let keys = try unlockedKeys(of: opened, passcode)
                try move(opened, to: kind, keys: keys, passcode: passcode, recoveryKey: recoveryKey)
                return text
            }
        }
    }

    package func createRecoveryKey(
        passcode: borrowing Passcode?, replacing: Bool
    ) throws(KeychainFailure) -> SharedSecretBytes {
        try requiringExistingKeychain { () throws(KeychainFailure) in
            try access.performOnCurrentKeybag { opened throws(KeychainFailure) in
                guard replacing || !opened.keybag.hasRecoveryKey else {
                    throw KeychainFailure(.duplicateItem, "this keychain has a recovery key, and a new one would make it useless")
                }
                let key = try RecoveryKey()
                let text = SharedSecretBytes(try key.text())
                let epoch = try opened.present().lockEpoch
                let (slots, autoLock) = try held(by: opened)
                let keys = try unlockedKeys(of: opened, passcode)
                let change = try opened.keybag.settingRecoveryKey(key, keys: keys, deviceSecret: try opened.deviceSecret())
                try access.replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch, slots: slots)
                return text
            }
        }
    }

    package func recoveryNeedsPasscode(_ recoveryKey: borrowing SecretBytes) throws(KeychainFailure) -> Bool {
        let key = try Self.key(typed: recoveryKey)
        return try requiringExistingKeychain { () throws(KeychainFailure) in
            let opened = try FileKeychainBackend(configuration: configuration, entitlements: entitlements).openForRecovery(key)
            defer { opened.store.close() }
            return opened.keybag.isPasscodeSet
        }
    }

    package func useRecoveryKey(
        _ recoveryKey: borrowing SecretBytes, protector kind: DeviceProtectorKind, passcode: borrowing Passcode?
    ) throws(KeychainFailure) {
        let key = try Self.key(typed: recoveryKey)
        try requiringExistingKeychain { () throws(KeychainFailure) in
            let opened = try FileKeychainBackend(configuration: configuration, entitlements: entitlements).openForRecovery(key)
            defer { opened.store.close() }
            try requireProtectorLost(kind, opened.protector.kind)
            var keys: UnlockedKeys?
            if opened.keybag.isPasscodeSet {
                let deviceSecret = try opened.deviceSecret()
                switch passcode {
                case .none: throw Self.passcodeMissing
                case .some(let passcode):
                    keys = try opened.keybag.unlockedKeys(passcode: passcode, deviceSecret: deviceSecret, recoveryKey: key)
                }
            }
            try move(opened, to: kind, keys: keys, passcode: passcode, recoveryKey: nil)
        }
    }

    /// A key file or credential that opens the keychain is not put at risk for another of its kind.
    private func requireProtectorLost(_ kind: DeviceProtectorKind, _ present: DeviceProtectorKind) throws(KeychainFailure) {
        guard kind == present, kind != .tpm2, (try? access.current(creating: false)) != nil else { return }
        throw KeychainFailure(.duplicateItem, "the keychain opens with its protector, \(kind.name): there is nothing to recover")
    }

    /// Throws `.authFailed` for a passcode that is wrong, or missing.
    private func unlockedKeys(of opened: Opened, _ passcode: borrowing Passcode?) throws(KeychainFailure) -> UnlockedKeys? {
        guard opened.keybag.isPasscodeSet else { return nil }
        switch passcode {
        case .none: throw Self.passcodeMissing
        case .some(let passcode): return try opened.unlockedKeys(passcode: passcode)
        }
    }

    private static var passcodeMissing: KeychainFailure {
        KeychainFailure(.authFailed, "a passcode is set, and this takes it", refusal: .notInteractive)
    }

    private static func text(of key: RecoveryKey?) throws(KeychainFailure) -> SharedSecretBytes? {
        guard let key else { return nil }
        return SharedSecretBytes(try key.text())
    }

    private static func key(typed text: borrowing SecretBytes) throws(KeychainFailure) -> RecoveryKey {
        // The bytes are read within the closure.
        try unsafe text.withBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    /// An earlier move to this protector may have died before its last step.
    private func removeLeftover(of opened: Opened) throws(KeychainFailure) {
        let keyFile = ProtectorSelection(configuration: configuration).keyFile
        let (kind, storeID) = (opened.protector.kind, opened.store.storeID)
        guard kind != .keyFile, keyFile.leftover(of: storeID) != nil else {
            throw KeychainFailure(.duplicateItem, "the protector of this keychain is \(kind.name) already; nothing was changed")
        }
        try keyFile.remove(for: storeID)
    }

    private func requiringExistingKeychain<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try naming { () throws(KeychainFailure) in
            do throws(KeychainFailure) {
                return try body()
            } catch {
                guard error.status == .itemNotFound else { throw error }
                throw KeychainFailure(
                    .notAvailable, "there is no keychain yet: the first write makes one, with the protector that KEYCHAIN_PROTECTOR names")
            }
        }
    }
}

/// The way from one protector to another.
///
/// Order: the new secret durable (a key file under its provisional name; what a chip sealed goes into the keybag itself), then one
/// transaction that replaces the keybag, then the key file's final name, and last the old key file's end. Dying anywhere in
/// between leaves the old protector or the new one; what else is left opens nothing, and the next move takes it away.
extension LocalKeychain {
    typealias Opened = OpenKeychain<SQLiteItemStore>

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
                try FileSystem.createPrivateDirectories(configuration.keyDirectory)
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
