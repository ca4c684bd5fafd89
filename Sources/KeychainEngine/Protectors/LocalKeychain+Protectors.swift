// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// The keychain in a file: its configuration, its protector, and its recovery key.
extension LocalKeychain: ProtectorManaging {
    func fileBackend() throws(KeychainFailure) -> FileKeychainBackend {
        guard let backend = backend as? FileKeychainBackend else { throw KeychainFailure.requiresFile() }
        return backend
    }

    /// Returns the location and the settings of a keychain in a file.
    ///
    /// Throws `.unimplemented` for a keychain in memory.
    package func configuration() throws(KeychainFailure) -> KeychainConfiguration { try fileBackend().configuration }

    package func setProtector(
        _ kind: DeviceProtectorKind, passcode: borrowing Passcode?, creatingRecoveryKey: Bool
    ) throws(KeychainFailure) -> SharedSecretBytes? {
        try requiringExistingKeychain { () throws(KeychainFailure) in
            try performOnCurrentKeybag { opened throws(KeychainFailure) in
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
            try performOnCurrentKeybag { opened throws(KeychainFailure) in
                guard replacing || !opened.keybag.hasRecoveryKey else {
                    throw KeychainFailure(.duplicateItem, "this keychain already has a recovery key, which a new one would replace")
                }
                let key = try RecoveryKey()
                let text = SharedSecretBytes(try key.text())
                let epoch = try opened.storedState().lockEpoch
                let (slots, autoLock) = try heldSlots(of: opened)
                let keys = try unlockedKeys(of: opened, passcode)
                let change = try opened.keybag.settingRecoveryKey(key, keys: keys, deviceSecret: try opened.deviceSecret())
                try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: epoch, slots: slots)
                return text
            }
        }
    }

    package func recoveryNeedsPasscode(
        _ recoveryKey: borrowing SecretBytes, acceptingOlderKeybag: Bool = false
    ) throws(KeychainFailure) -> Bool {
        let key = try Self.key(typed: recoveryKey)
        return try requiringExistingKeychain { () throws(KeychainFailure) in
            try withKeychain(openedBy: key, acceptingOlderKeybag: acceptingOlderKeybag) { opened throws(KeychainFailure) in
                opened.keybag.isPasscodeSet
            }
        }
    }

    package func useRecoveryKey(
        _ recoveryKey: borrowing SecretBytes, protector kind: DeviceProtectorKind, passcode: borrowing Passcode?,
        acceptingNoPasscode: Bool, acceptingOlderKeybag: Bool = false
    ) throws(KeychainFailure) {
        let key = try Self.key(typed: recoveryKey)
        try requiringExistingKeychain { () throws(KeychainFailure) in
            try withKeychain(openedBy: key, acceptingOlderKeybag: acceptingOlderKeybag) { opened throws(KeychainFailure) in
                try requireProtectorLost(kind, of: opened)
                var keys: UnlockedKeys?
                if opened.keybag.isPasscodeSet {
                    let deviceSecret = try opened.deviceSecret()
                    switch passcode {
                    case .none: throw Self.passcodeMissing
                    case .some(let passcode):
                        keys = try opened.keybag.unlockedKeys(passcode: passcode, deviceSecret: deviceSecret, recoveryKey: key)
                    }
                } else if !acceptingNoPasscode {
                    throw KeychainFailure(
                        .authFailed, "the keychain that this recovery key opens has no passcode, and that was not accepted",
                        refusal: .passcodeNotSet)
                }
                try move(opened, to: kind, keys: keys, passcode: passcode, recoveryKey: nil, keepsKeyFile: true)
            }
        }
    }

    /// Runs `body` on the keychain, opened by a recovery key instead of its protector.
    private func withKeychain<Result>(
        openedBy key: RecoveryKey, acceptingOlderKeybag: Bool, _ body: (OpenKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let backend = try fileBackend()
        return try addingContext { () throws(KeychainFailure) in
            let opened = try backend.openForRecovery(key, acceptingOlderKeybag: acceptingOlderKeybag)
            defer { backend.close(opened) }
            return try body(opened)
        }
    }

    /// Refuses to replace a key file or credential that has the secret of the keychain by another of the same kind.
    ///
    /// It may not open the keychain nevertheless, because the content is refused. A new protector would not change that.
    private func requireProtectorLost(_ kind: DeviceProtectorKind, of recovered: OpenKeychain) throws(KeychainFailure) {
        guard kind == recovered.protector.kind, kind != .tpm2 else { return }
        let storeID = recovered.keybag.storeID
        let protector: any DeviceProtector = try ProtectorSelection(configuration: try configuration()).protector(
            of: recovered.keybag.document.protector, holder: recovered.holder)
        let secret = try recovered.deviceSecret()
        let requireSame = { (present: borrowing SecretBytes) throws(KeychainFailure) in
            // The bytes are compared within the closures.
            let isSame = unsafe secret.withBytes { mine in unsafe present.withBytes { unsafe mine.elementsEqual($0) } }
            guard isSame else { throw KeychainFailure(.notAvailable, "the protector has another secret") }
        }
        do throws(KeychainFailure) {
            if let keyFile = protector as? KeyFile {
                try keyFile.openingCopy(of: storeID, requireSame)
            } else {
                try requireSame(try protector.deviceSecret(for: storeID))
            }
        } catch {
            return
        }
        throw KeychainFailure(.duplicateItem, "the keychain opens with its protector, \(kind.name): there is nothing to recover")
    }

    /// Returns nil if no passcode is set.
    ///
    /// Throws `.authFailed` for a passcode that is wrong or missing.
    func unlockedKeys(of opened: OpenKeychain, _ passcode: borrowing Passcode?) throws(KeychainFailure) -> UnlockedKeys? {
        guard opened.keybag.isPasscodeSet else { return nil }
        switch passcode {
        case .none: throw Self.passcodeMissing
        case .some(let passcode): return try opened.unlockedKeys(passcode: passcode)
        }
    }

    private static var passcodeMissing: KeychainFailure {
        KeychainFailure(.authFailed, "a passcode is set, and this operation requires it", refusal: .notInteractive)
    }

    private static func text(of key: RecoveryKey?) throws(KeychainFailure) -> SharedSecretBytes? {
        guard let key else { return nil }
        return SharedSecretBytes(try key.text())
    }

    private static func key(typed text: borrowing SecretBytes) throws(KeychainFailure) -> RecoveryKey {
        // The bytes are read within the closure.
        try unsafe text.withBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    /// Completes an earlier move to this protector that was interrupted before its last step.
    private func removeLeftover(of opened: OpenKeychain) throws(KeychainFailure) {
        let keyFile = try keyFile()
        let (kind, storeID) = (opened.protector.kind, opened.keybag.storeID)
        guard kind != .keyFile, keyFile.leftoverPath(of: storeID) != nil else {
            throw KeychainFailure(
                .duplicateItem, "the protector of this keychain is \(kind.name) already",
                subject: kind == .systemdCredential ? .credential : nil)
        }
        // In a transaction, so that no other process moves the keychain back meanwhile.
        try opened.keychain.write { _ throws(KeychainFailure) in try keyFile.remove(for: storeID) }
    }

    private func requiringExistingKeychain<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            guard error.status == .itemNotFound else { throw error }
            throw backend.addingContext(
                to: KeychainFailure(
                    .notAvailable, "no keychain exists yet: store a secret to create it; KEYCHAIN_PROTECTOR chooses its protector"))
        }
    }
}

/// Moving a keychain from one protector to another.
///
/// Order: the new secret is made durable (a key file under its provisional name; a sealed secret is part of the keybag), then one
/// transaction replaces the keybag, then the key file gets its final name, and last the old key file is removed. A crash at any
/// point leaves the old protector or the new one. Of several key files, the one that opens the keychain is used.
extension LocalKeychain {
    private func keyFile() throws(KeychainFailure) -> KeyFile { ProtectorSelection(configuration: try configuration()).keyFile }

    /// Moves the open keychain.
    ///
    /// `keys` and `passcode` are non-nil if and only if a passcode is set. With `keepsKeyFile` no key file is deleted: the keychain was opened
    /// without its protector, so the key file may be that of a newer copy.
    private func move(
        _ opened: OpenKeychain, to kind: DeviceProtectorKind, keys: UnlockedKeys?, passcode: borrowing Passcode?, recoveryKey: RecoveryKey?,
        keepsKeyFile: Bool = false
    ) throws(KeychainFailure) {
        let storeID = opened.keybag.storeID
        let keyFile = try keyFile()
        let lockEpoch = try opened.storedState().lockEpoch
        let (slots, autoLock) = try heldSlots(of: opened)
        let deviceSecret = try opened.deviceSecret()
        let new = try ProtectorSelection(configuration: try configuration()).newSecret(kind, for: storeID)
        let change = try opened.keybag.movingProtector(
            to: new.record, newDeviceSecret: new.shared.secret, deviceSecret: deviceSecret, keys: keys, passcode: passcode,
            device: new.device, recoveryKey: recoveryKey)
        // From now on the held secret opens only the new keybag. A process that still has the old one discards it.
        if kind == .tpm2 {
            TPMProtector.hold(new.shared.secret, sealedAs: try new.record.sealedDeviceSecret(), of: storeID, in: opened.holder)
        }
        try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch, slots: slots) { _ throws(KeychainFailure) in
            // In the transaction there is no other writer, and the keybag is still the one that was read: of two concurrent moves,
            // the second one is refused before this point.
            if kind == .keyFile {
                try keyFile.createDirectory()
                try keyFile.prepareMove(new.shared.secret, for: storeID)
            }
            return false
        }
        // The new protector is in force. If a step fails here, the next opening or the next move completes it.
        do throws(KeychainFailure) {
            if kind == .keyFile {
                try keyFile.confirm(for: storeID)
            } else if keepsKeyFile {
                try keyFile.setAside(for: storeID)
            } else {
                // In a transaction, and only while the new protector is in force: another process may have moved the keychain back.
                let moved = try current(creating: false)
                if moved.keybag.keybagGeneration == change.document.generation {
                    try moved.keychain.write { _ throws(KeychainFailure) in try keyFile.remove(for: storeID) }
                }
            }
            if kind != .tpm2 { try opened.holder.remove(.device) }
        } catch {
            EngineLog.warn("the keychain was moved to its new protector, but the cleanup failed: \(error)")
        }
    }

    /// The slots that hold keys now, and the auto-lock time: a change of protector neither locks nor unlocks.
    private func heldSlots(of opened: OpenKeychain) throws(KeychainFailure) -> ([KeyHolderSlot], AutoLock) {
        guard opened.keybag.isPasscodeSet else { return ([], .standard) }
        var slots: [KeyHolderSlot] = []
        let lockEpoch = try opened.store.lockEpoch()
        let state = try opened.keybag.lockState(at: lockEpoch)
        if state != .neverUnlocked { slots.append(.firstUnlock) }
        if state == .unlocked { slots.append(.unlocked) }
        return (slots, try opened.keybag.autoLock(at: lockEpoch) ?? .standard)
    }
}
