// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// Moving a keybag to another device secret, and setting its recovery key.
///
/// These functions do not write to the store; each returns a change.
extension OpenKeybag {
    package var hasRecoveryKey: Bool { document.hasRecoveryKey }

    /// Sets the recovery key; an earlier one becomes invalid.
    ///
    /// While a passcode is set, `keys` must be the keys that it unlocked: a way around the TPM or the lock requires the passcode.
    package func settingRecoveryKey(
        _ key: RecoveryKey, keys: UnlockedKeys?, deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) -> KeybagChange {
        defer { SecretArena.wipeStack() }
        let authenticationKey = try verifiedAuthenticationKey(of: deviceSecret)
        let classKeys = try keys.map { keys throws(KeychainFailure) in try self.keys(of: keys) }
        guard !isPasscodeSet || keys != nil else {
            throw KeychainFailure(.authFailed, "a passcode is set, and creating a recovery key requires it", refusal: .notInteractive)
        }
        var content = document.content
        content.recovery = try RecoveryRecord(
            key, storeKeys: storeKeyChecks(deviceSecret: deviceSecret), deviceSecret: deviceSecret, passcodeSecret: keys?.passcodeSecret,
            storeID: storeID)
        return try next(content, keys: classKeys, keys?.presence, keys?.passcodeSecret, authenticatedBy: authenticationKey)
    }

    /// Wraps all keys under another device secret.
    ///
    /// While a passcode is set, `keys` must be the keys that it unlocked and `passcode` the passcode itself, because the passcode key
    /// depends on the device secret. `device` is the TPM of `protector`, if that is one. `recoveryKey` replaces the recovery key; nil
    /// keeps it.
    package func movingProtector(
        to protector: KeybagDocument.ProtectorRecord, newDeviceSecret: borrowing SecretBytes, deviceSecret: borrowing SecretBytes,
        keys: UnlockedKeys?, passcode: borrowing Passcode?, device: (any SealingDevice)? = nil, recoveryKey: RecoveryKey? = nil
    ) throws(KeychainFailure) -> KeybagChange {
        defer { SecretArena.wipeStack() }
        try verifiedAuthenticationKey(of: deviceSecret)
        let deviceKey = try KeyPurpose.deviceKey.derive(from: newDeviceSecret, storeID: storeID)
        var content = document.content
        content.protector = protector
        try rewrapStoreKeys(of: &content, from: deviceSecret, under: deviceKey)
        var moved: PasscodeMove?
        if let cost = passcodeCost {
            guard let keys else { throw Self.moveNeedsPasscode() }
            moved = try movePasscode(
                of: keys, passcode, cost: cost, to: &content, deviceKey: deviceKey, newDeviceSecret: newDeviceSecret, device: device)
        } else {
            content.classKeys = try entries(of: deviceBoundKeys, isPasscodeSet: false, deviceKey: deviceKey, passcodeKey: deviceKey)
        }
        if let recoveryKey {
            content.recovery = try RecoveryRecord(
                recoveryKey, storeKeys: storeKeyChecks(deviceSecret: deviceSecret), deviceSecret: newDeviceSecret,
                passcodeSecret: moved?.secret, storeID: storeID)
        } else {
            content.recovery = try content.recovery?.with(
                deviceSecret: newDeviceSecret, passcodeSecret: moved?.secret, storeID: storeID)
        }
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: newDeviceSecret, storeID: storeID))
        let cipher = try HolderPayloadCipher(deviceSecret: newDeviceSecret, storeID: storeID)
        return try next(
            content, keys: moved?.keys, moved?.presence, moved?.secret, authenticatedBy: authenticationKey, cipher: cipher)
    }

    /// The secrets of a moved keybag with a passcode.
    private struct PasscodeMove {
        let keys: [ClassKeyID: SharedClassKey]
        let presence: PresenceKeyPair
        let secret: PasscodeSecret?
    }

    private func movePasscode(
        of current: UnlockedKeys, _ passcode: borrowing Passcode?, cost: PasscodeCost, to content: inout KeybagDocument.Content,
        deviceKey: borrowing SecretBytes, newDeviceSecret: borrowing SecretBytes, device: (any SealingDevice)?
    ) throws(KeychainFailure) -> PasscodeMove {
        let keys = try keys(of: current)
        let presence = if let pair = current.presence { pair } else { try PresenceKeyPair() }
        switch passcode {
        case .none: throw Self.moveNeedsPasscode()
        case .some(let passcode):
            let new = try NewPasscodeKey(
                passcode, cost: cost, deviceSecret: newDeviceSecret, storeID: storeID, protector: content.protector.kind, device: device)
            content.classKeys = try entries(of: keys, isPasscodeSet: true, deviceKey: deviceKey, passcodeKey: new.key.secret)
            content.passcode = new.record
            content.presence = try presence.record(under: new.key.secret)
            content.sealedPasscodeSecret = new.sealedSecret
            return PasscodeMove(keys: keys, presence: presence, secret: new.secret)
        }
    }

    private static func moveNeedsPasscode() -> KeychainFailure {
        KeychainFailure(.authFailed, "a passcode is set, and moving to another protector requires it", refusal: .notInteractive)
    }

    /// One-way values of the index key and the row-tag key.
    func storeKeyChecks(deviceSecret: borrowing SecretBytes) throws(KeychainFailure) -> StoreKeyChecks {
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        return try StoreKeyChecks(
            indexKey: Self.unwrap(document.content.wrappedIndexKey, under: deviceKey),
            rowTagKey: Self.unwrap(document.content.wrappedRowTagKey, under: deviceKey), storeID: storeID)
    }

    private func rewrapStoreKeys(
        of content: inout KeybagDocument.Content, from deviceSecret: borrowing SecretBytes, under newDeviceKey: borrowing SecretBytes
    ) throws(KeychainFailure) {
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        guard let indexKey = KeyWrapping.unwrap(content.wrappedIndexKey, under: deviceKey),
            let rowTagKey = KeyWrapping.unwrap(content.wrappedRowTagKey, under: deviceKey)
        else { throw KeybagDocument.malformed() }
        content.wrappedIndexKey = try KeyWrapping.wrap(indexKey, under: newDeviceKey)
        content.wrappedRowTagKey = try KeyWrapping.wrap(rowTagKey, under: newDeviceKey)
    }
}
