// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A new keybag that replaces the current one.
///
/// It must be stored before it is used.
package struct KeybagChange: Sendable {
    package let document: KeybagDocument
    /// The class keys of `document`; nil if the change was made without them.
    package let keys: UnlockedKeys?
}

/// Unlocking a keybag, and changing its passcode.
///
/// These functions do not write to the store: each returns a new keybag of the next generation. The device secret is not stored. Each
/// operation wipes the stack, because it may contain copies of class keys, which a lock could not erase.
extension OpenKeybag {
    /// Identifies the passcode: different after each change of it, nil while none is set.
    package var passcodeIdentifier: [UInt8]? { document.content.passcode?.salt }

    /// Returns all class keys.
    ///
    /// `device` is the TPM, if one keeps a part of the passcode key. Throws `.authFailed` if the passcode is wrong or none is set, and
    /// the failures of the TPM.
    package func unlockedKeys(
        passcode: borrowing Passcode, deviceSecret: borrowing SecretBytes, device: (any SealingDevice)? = nil
    ) throws(KeychainFailure) -> UnlockedKeys {
        try unlockedKeys(passcode, deviceSecret, .device(device))
    }

    /// Returns all class keys if the TPM is lost: the recovery key replaces its part of the passcode key.
    package func unlockedKeys(
        passcode: borrowing Passcode, deviceSecret: borrowing SecretBytes, recoveryKey: RecoveryKey
    ) throws(KeychainFailure) -> UnlockedKeys {
        try unlockedKeys(passcode, deviceSecret, .recoveryKey(recoveryKey))
    }

    private func unlockedKeys(
        _ passcode: borrowing Passcode, _ deviceSecret: borrowing SecretBytes, _ source: PasscodeSecretSource
    ) throws(KeychainFailure) -> UnlockedKeys {
        defer { SecretArena.wipeStack() }
        guard isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet) }
        try verifiedAuthenticationKey(of: deviceSecret)
        let (passcodeKey, secret) = try PasscodeKey.derive(from: passcode, in: document, deviceSecret: deviceSecret, source)
        var keys = deviceBoundKeys
        let wrapped = document.classKeys.filter { $0.wrapping == .passcodeKey }
        for entry in wrapped { keys[entry.id] = try SharedClassKey(unwrapping: entry, under: passcodeKey.secret, storeID: storeID) }
        // The keybag is authentic and one key wraps all of these: with a wrong passcode none of them opens.
        guard keys.count > deviceBoundKeys.count else {
            throw KeychainFailure(.authFailed, "the passcode is wrong", refusal: .wrongPasscode)
        }
        guard keys.count == deviceBoundKeys.count + wrapped.count else { throw KeybagDocument.malformed() }
        var presence: PresenceKeyPair?
        if let record = document.content.presence {
            presence = try PresenceKeyPair(unwrapping: record, under: passcodeKey.secret)
            guard presence != nil else { throw KeybagDocument.malformed() }
        }
        return UnlockedKeys(document: document, keys: keys, presence: presence, passcodeSecret: secret, cipher: payloadCipher)
    }

    /// Sets the first passcode: adds a new generation of class keys, and wraps the older ones under the passcode too.
    ///
    /// The generation is greater than `newestGeneration` too, the highest that rows name. Throws `.duplicateItem` if a passcode is set.
    package func settingPasscode(
        _ passcode: borrowing Passcode, cost: PasscodeCost, newestGeneration: UInt32 = 0, deviceSecret: borrowing SecretBytes,
        device: (any SealingDevice)? = nil
    ) throws(KeychainFailure) -> KeybagChange {
        defer { SecretArena.wipeStack() }
        guard !isPasscodeSet else { throw KeychainFailure(.duplicateItem, "a passcode is set already") }
        var keys = deviceBoundKeys
        try addGeneration(after: newestGeneration, to: &keys)
        return try change(
            to: keys, presence: PresenceKeyPair(), passcode: passcode, cost: cost, deviceSecret: deviceSecret, device: device)
    }

    /// Wraps the same class keys under another passcode or another cost; with `rotatingKeys` also adds a new generation.
    ///
    /// The presence key pair is kept, because items are sealed to it. If there is none, one is created. `newestGeneration` as for
    /// `settingPasscode`.
    package func changingPasscode(
        of current: UnlockedKeys, to passcode: borrowing Passcode, cost: PasscodeCost, rotatingKeys: Bool,
        newestGeneration: UInt32 = 0, deviceSecret: borrowing SecretBytes, device: (any SealingDevice)? = nil
    ) throws(KeychainFailure) -> KeybagChange {
        defer { SecretArena.wipeStack() }
        guard isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet) }
        var keys = try keys(of: current)
        if rotatingKeys { try addGeneration(after: newestGeneration, to: &keys) }
        let presence = if let pair = current.presence { pair } else { try PresenceKeyPair() }
        return try change(
            to: keys, presence: presence, passcode: passcode, cost: cost, deviceSecret: deviceSecret, device: device)
    }

    /// Removes the passcode: wraps all class keys under the device key, except those that exist only with a passcode.
    package func removingPasscode(
        of current: UnlockedKeys, deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) -> KeybagChange {
        defer { SecretArena.wipeStack() }
        guard isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet) }
        let keys = try keys(of: current).filter { KeybagDocument.wrapping(of: $0.key.accessibility, isPasscodeSet: false) != nil }
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        let entries = try entries(of: keys, isPasscodeSet: false, deviceKey: deviceKey, passcodeKey: deviceKey)
        var content = document.content
        content.classKeys = entries
        try content.setPasscode(nil, secret: nil, storeID: storeID)
        return try next(content, keys: keys, nil, nil, authenticatedBy: verifiedAuthenticationKey(of: deviceSecret))
    }

    /// Removes older class keys that nothing uses; nil if there are none.
    ///
    /// The newest generation of each class is always kept. Needs no passcode, because the remaining keys keep their wrapping. `keys`, if
    /// given, are this keybag's; the change then has the new keybag's.
    package func droppingGenerations(
        notIn used: Set<ClassKeyID>, of keys: UnlockedKeys?, deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) -> KeybagChange? {
        let entries = document.classKeys.filter { entry in
            used.contains(entry.id) || entry.id.generation == document.newestGeneration(of: entry.id.accessibility)
        }
        guard entries.count < document.classKeys.count else { return nil }
        let remaining = Set(entries.map(\.id))
        let (pair, secret) = (keys?.presence, keys?.passcodeSecret)
        let keys = try keys.map { keys throws(KeychainFailure) in try self.keys(of: keys).filter { remaining.contains($0.key) } }
        var content = document.content
        content.classKeys = entries
        return try next(content, keys: keys, pair, secret, authenticatedBy: verifiedAuthenticationKey(of: deviceSecret))
    }

    func keys(of current: UnlockedKeys) throws(KeychainFailure) -> [ClassKeyID: SharedClassKey] {
        guard current.document.encoded == document.encoded else {
            throw KeychainFailure(
                .notAvailable, "the unlocked keys are those of another keybag", subject: .keybag, requiresReopening: true)
        }
        var keys: [ClassKeyID: SharedClassKey] = [:]
        for entry in document.classKeys { keys[entry.id] = try current.key(entry.id) }
        return keys
    }

    private func addGeneration(
        after newest: UInt32, to keys: inout [ClassKeyID: SharedClassKey]
    ) throws(KeychainFailure) {
        let (generation, isTooHigh) = max(currentPasscodeGeneration, newest).addingReportingOverflow(1)
        guard !isTooHigh else { throw KeychainFailure(.notAvailable, "the class keys cannot be renewed again", subject: .keybag) }
        for accessibility in ItemAccessibility.allCases where accessibility.holderSlot != nil {
            let id = ClassKeyID(accessibility, generation: generation)
            keys[id] = try SharedClassKey(random: id)
        }
    }

    private func change(
        to keys: [ClassKeyID: SharedClassKey], presence: PresenceKeyPair, passcode: borrowing Passcode, cost: PasscodeCost,
        deviceSecret: borrowing SecretBytes, device: (any SealingDevice)?
    ) throws(KeychainFailure) -> KeybagChange {
        let authenticationKey = try verifiedAuthenticationKey(of: deviceSecret)
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        let new = try NewPasscodeKey(
            passcode, cost: cost, deviceSecret: deviceSecret, storeID: storeID, protector: document.protector.kind, device: device)
        var content = document.content
        content.classKeys = try entries(of: keys, isPasscodeSet: true, deviceKey: deviceKey, passcodeKey: new.key.secret)
        let part = PasscodeFields(record: new.record, presence: try presence.record(under: new.key.secret), sealedSecret: new.sealedSecret)
        try content.setPasscode(part, secret: new.secret, storeID: storeID)
        return try next(content, keys: keys, presence, new.secret, authenticatedBy: authenticationKey)
    }

    func entries(
        of keys: [ClassKeyID: SharedClassKey], isPasscodeSet: Bool, deviceKey: borrowing SecretBytes, passcodeKey: borrowing SecretBytes
    ) throws(KeychainFailure) -> [KeybagDocument.ClassKeyEntry] {
        var entries: [KeybagDocument.ClassKeyEntry] = []
        let ids = keys.keys.sorted { ($0.accessibility.code, $0.generation) < ($1.accessibility.code, $1.generation) }
        for id in ids {
            guard let key = keys[id] else { continue }
            switch KeybagDocument.wrapping(of: id.accessibility, isPasscodeSet: isPasscodeSet) {
            case .deviceKey: entries.append(try key.entry(.deviceKey, under: deviceKey, storeID: storeID))
            case .passcodeKey: entries.append(try key.entry(.passcodeKey, under: passcodeKey, storeID: storeID))
            case nil: continue
            }
        }
        return entries
    }

    /// The keybag of the next generation, with its class keys if they are given.
    ///
    /// `cipher` is that of another device secret; nil: of the present one.
    func next(
        _ content: KeybagDocument.Content, keys: [ClassKeyID: SharedClassKey]?, _ pair: PresenceKeyPair?, _ secret: PasscodeSecret?,
        authenticatedBy authenticationKey: borrowing HMACKey, cipher: HolderPayloadCipher? = nil
    ) throws(KeychainFailure) -> KeybagChange {
        var content = content
        let (generation, isTooHigh) = content.generation.addingReportingOverflow(1)
        guard !isTooHigh else { throw KeychainFailure(.notAvailable, "the keybag cannot be changed again", subject: .keybag) }
        content.generation = generation
        let changed = KeybagDocument(storeID: storeID, content: content, authenticatedBy: authenticationKey)
        return KeybagChange(
            document: changed,
            keys: keys.map {
                UnlockedKeys(document: changed, keys: $0, presence: pair, passcodeSecret: secret, cipher: cipher ?? payloadCipher)
            })
    }

    /// Derives the key that authenticates this keybag, and verifies it: a keybag written under a wrong device secret could never be
    /// opened again.
    @discardableResult
    func verifiedAuthenticationKey(of deviceSecret: borrowing SecretBytes) throws(KeychainFailure) -> HMACKey {
        let key = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        guard KeybagDocument.isAuthentic(document.encoded, by: key) else {
            throw KeychainFailure(.notAvailable, "the device secret is that of another store", subject: .keybag)
        }
        return key
    }
}

/// The fields of a keybag that depend on the passcode.
struct PasscodeFields: Sendable {
    let record: PasscodeRecord
    let presence: PresenceRecord
    /// Only with the protector tpm2.
    let sealedSecret: SealedObject?
}

extension KeybagDocument.Content {
    /// Sets or, with nil, removes the passcode.
    ///
    /// The recovery key stays valid: sealing the new secret to it needs only its public key.
    mutating func setPasscode(_ part: PasscodeFields?, secret: PasscodeSecret?, storeID: StoreID) throws(KeychainFailure) {
        passcode = part?.record
        presence = part?.presence
        sealedPasscodeSecret = part?.sealedSecret
        recovery = try recovery?.with(passcodeSecret: secret, storeID: storeID)
    }
}
