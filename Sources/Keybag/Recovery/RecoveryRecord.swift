// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// The record of a recovery key in a keybag.
///
///     public key (32) ‖ authentication code (32) ‖ sealed device secret (80)
///     ‖ with the protector tpm2 and a passcode: sealed part of the passcode key (80)
///
/// Anyone can seal a secret to the public key, so the secret that the record yields proves nothing about the keybag. The authentication
/// code does: it binds the recovery key to the store's index key and row-tag key, which never change.
struct RecoveryRecord: Hashable, Sendable {
    static let publicKeyByteCount = 32
    private static let codeByteCount = 32

    let publicKey: [UInt8]
    /// Made with the recovery key and kept when the passcode or the protector changes, which happens without the recovery key.
    let code: [UInt8]
    let sealedDeviceSecret: [UInt8]
    let sealedPasscodeSecret: [UInt8]?

    private init(publicKey: [UInt8], code: [UInt8], sealedDeviceSecret: [UInt8], sealedPasscodeSecret: [UInt8]?) {
        self.publicKey = publicKey
        self.code = code
        self.sealedDeviceSecret = sealedDeviceSecret
        self.sealedPasscodeSecret = sealedPasscodeSecret
    }

    /// Creates the record of a new recovery key.
    init(
        _ key: RecoveryKey, storeKeys: StoreKeyChecks, deviceSecret: borrowing SecretBytes, passcodeSecret: PasscodeSecret?,
        storeID: StoreID
    ) throws(KeychainFailure) {
        let publicKey = try key.publicKey(storeID: storeID)
        self.init(
            publicKey: publicKey, code: Array(try Self.code(publicKey, storeKeys, by: key, storeID: storeID)),
            sealedDeviceSecret: try SealedBox.seal(deviceSecret, to: publicKey, .recovery, storeID: storeID),
            sealedPasscodeSecret: try Self.seal(passcodeSecret, to: publicKey, storeID: storeID))
    }

    /// The same record for another passcode or for none.
    func with(passcodeSecret: PasscodeSecret?, storeID: StoreID) throws(KeychainFailure) -> RecoveryRecord {
        RecoveryRecord(
            publicKey: publicKey, code: code, sealedDeviceSecret: sealedDeviceSecret,
            sealedPasscodeSecret: try Self.seal(passcodeSecret, to: publicKey, storeID: storeID))
    }

    /// The same record for another device secret.
    func with(
        deviceSecret: borrowing SecretBytes, passcodeSecret: PasscodeSecret?, storeID: StoreID
    ) throws(KeychainFailure) -> RecoveryRecord {
        RecoveryRecord(
            publicKey: publicKey, code: code,
            sealedDeviceSecret: try SealedBox.seal(deviceSecret, to: publicKey, .recovery, storeID: storeID),
            sealedPasscodeSecret: try Self.seal(passcodeSecret, to: publicKey, storeID: storeID))
    }

    /// Whether this record was made with this recovery key for a store with these keys.
    func isAuthentic(_ storeKeys: StoreKeyChecks, by key: RecoveryKey, storeID: StoreID) throws(KeychainFailure) -> Bool {
        let expected = try Self.code(publicKey, storeKeys, by: key, storeID: storeID)
        // A digest compares itself with bytes in constant time.
        return unsafe code.withUnsafeBytes { unsafe expected == $0 }
    }

    private static func code(
        _ publicKey: [UInt8], _ storeKeys: StoreKeyChecks, by key: RecoveryKey, storeID: StoreID
    ) throws(KeychainFailure) -> SHA256.Digest {
        try key.authenticationKey(storeID: storeID).authenticationCode { hash in
            hash.update(data: storeID.bytes + publicKey + storeKeys.indexKey + storeKeys.rowTagKey)
        }
    }

    private static func seal(
        _ secret: PasscodeSecret?, to publicKey: [UInt8], storeID: StoreID
    ) throws(KeychainFailure) -> [UInt8]? {
        guard let secret else { return nil }
        return try SealedBox.seal(secret.bytes, to: publicKey, .passcodeRecovery, storeID: storeID)
    }

    init(encoded: ArraySlice<UInt8>) throws(KeychainFailure) {
        var reader = ByteReader(encoded)
        guard let publicKey = reader.readBytes(Self.publicKeyByteCount), let code = reader.readBytes(Self.codeByteCount),
            let deviceSecret = reader.readBytes(SealedBox.byteCount)
        else { throw KeybagDocument.malformed() }
        var passcodeSecret: [UInt8]?
        if !reader.isAtEnd {
            guard let box = reader.readBytes(SealedBox.byteCount), reader.isAtEnd else { throw KeybagDocument.malformed() }
            passcodeSecret = Array(box)
        }
        self.init(
            publicKey: Array(publicKey), code: Array(code), sealedDeviceSecret: Array(deviceSecret), sealedPasscodeSecret: passcodeSecret)
    }

    var encoded: [UInt8] { publicKey + code + sealedDeviceSecret + (sealedPasscodeSecret ?? []) }

    /// Opens the device secret; nil if the key is not this record's or the record was altered.
    func deviceSecret(openedBy key: RecoveryKey, storeID: StoreID) throws(KeychainFailure) -> SecretBytes? {
        try SealedBox.open(sealedDeviceSecret, with: key.privateKey(storeID: storeID), .recovery, storeID: storeID)
    }

    /// Opens the TPM's part of the passcode key; nil if there is none, and in the cases above.
    func passcodeSecret(openedBy key: RecoveryKey, storeID: StoreID) throws(KeychainFailure) -> PasscodeSecret? {
        guard let sealedPasscodeSecret else { return nil }
        let secret = try SealedBox.open(
            sealedPasscodeSecret, with: key.privateKey(storeID: storeID), .passcodeRecovery, storeID: storeID)
        switch consume secret {
        case .some(let secret): return PasscodeSecret(secret)
        case .none: return nil
        }
    }
}

/// One-way values of the two keys that a store keeps for life.
struct StoreKeyChecks: Sendable {
    let indexKey: [UInt8]
    let rowTagKey: [UInt8]

    init(indexKey: borrowing SecretBytes, rowTagKey: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) {
        self.indexKey = try KeyPurpose.indexKeyCheck.deriveBytes(from: indexKey, storeID: storeID, context: [], byteCount: 32)
        self.rowTagKey = try KeyPurpose.rowTagKeyCheck.deriveBytes(from: rowTagKey, storeID: storeID, context: [], byteCount: 32)
    }
}

/// A keybag that a recovery key opened, and the device secret that opens it.
package struct RecoveredKeybag: Sendable {
    package let keybag: OpenKeybag
    package let deviceSecret: SharedSecretBytes
}

extension KeybagDocument {
    /// Whether the keybag has a recovery key.
    package var hasRecoveryKey: Bool { content.recovery != nil }

    static func wrongRecoveryKey() -> KeychainFailure {
        KeychainFailure(
            .authFailed, "this is not the recovery key of this keychain: it belongs to another one, or was replaced",
            refusal: .wrongRecoveryKey)
    }
}

extension OpenKeybag {
    /// Opens the keybag of a store with a recovery key.
    ///
    /// The device secret in a copy authenticates the keybag, and the authentication code of the recovery record proves that the keybag
    /// has the keys of this store. A copy without this proof is skipped, so one forged copy does not prevent the recovery.
    ///
    /// Throws `.authFailed` if the key is not this keychain's, `.notAvailable` if no copy has a recovery key, and damage if the key
    /// opens only copies that are not authentic.
    package static func recovering(
        _ copies: [[UInt8]], with key: RecoveryKey, storeID: StoreID, holder: (any KeyHolder)? = nil,
        applicationPasswordCost: PasscodeCost = .standard
    ) throws(KeychainFailure) -> RecoveredKeybag {
        defer { SecretArena.wipeStack() }
        var isRecordFound = false
        var failure: KeychainFailure?
        var openingFailure: KeychainFailure?
        for copy in KeybagDocument.newestFirst(copies) {
            let record: RecoveryRecord
            do throws(KeychainFailure) {
                guard let field = try KeybagDocument.hint(.recovery, in: copy) else { continue }
                record = try RecoveryRecord(encoded: field)
            } catch {
                failure = error
                continue
            }
            isRecordFound = true
            let secret = try record.deviceSecret(openedBy: key, storeID: storeID)
            switch consume secret {
            case .none: continue
            case .some(let secret):
                do throws(KeychainFailure) {
                    let keybag = try OpenKeybag(
                        copies: copies, storeID: storeID, deviceSecret: secret, holder: holder,
                        applicationPasswordCost: applicationPasswordCost)
                    try keybag.requireProof(by: key, deviceSecret: secret)
                    return RecoveredKeybag(keybag: keybag, deviceSecret: SharedSecretBytes(secret))
                } catch {
                    openingFailure = openingFailure ?? error
                }
            }
        }
        if let openingFailure { throw openingFailure }
        if isRecordFound { throw KeybagDocument.wrongRecoveryKey() }
        throw failure
            ?? KeychainFailure(
                .notAvailable, "this keychain has no recovery key, or its record of it is damaged", subject: .keybag)
    }

    /// Throws unless the recovery key was made for a store with the keys of this keybag.
    private func requireProof(by key: RecoveryKey, deviceSecret: borrowing SecretBytes) throws(KeychainFailure) {
        guard let record = document.content.recovery, try record.publicKey == key.publicKey(storeID: storeID) else {
            throw KeybagDocument.wrongRecoveryKey()
        }
        guard try record.isAuthentic(storeKeyChecks(deviceSecret: deviceSecret), by: key, storeID: storeID) else {
            throw KeychainFailure(
                .notAvailable, "the keybag was not written by this keychain: the file was altered",
                subject: .keybag, cause: .damaged, isDamage: true)
        }
    }
}
