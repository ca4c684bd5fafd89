// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The record of a recovery key in a keybag.
///
///     public key (32) ‖ sealed device secret (80) ‖ with the protector tpm2 and a passcode: sealed part of the passcode key (80)
struct RecoveryRecord: Hashable, Sendable {
    static let publicKeyByteCount = 32

    let publicKey: [UInt8]
    let sealedDeviceSecret: [UInt8]
    let sealedPasscodeSecret: [UInt8]?

    private init(publicKey: [UInt8], sealedDeviceSecret: [UInt8], sealedPasscodeSecret: [UInt8]?) {
        self.publicKey = publicKey
        self.sealedDeviceSecret = sealedDeviceSecret
        self.sealedPasscodeSecret = sealedPasscodeSecret
    }

    init(
        publicKey: [UInt8], deviceSecret: borrowing SecretBytes, passcodeSecret: PasscodeSecret?, storeID: StoreID
    ) throws(KeychainFailure) {
        self.init(
            publicKey: publicKey, sealedDeviceSecret: try SealedBox.seal(deviceSecret, to: publicKey, .recovery, storeID: storeID),
            sealedPasscodeSecret: try Self.seal(passcodeSecret, to: publicKey, storeID: storeID))
    }

    /// The same record for another passcode or for none.
    func with(passcodeSecret: PasscodeSecret?, storeID: StoreID) throws(KeychainFailure) -> RecoveryRecord {
        RecoveryRecord(
            publicKey: publicKey, sealedDeviceSecret: sealedDeviceSecret,
            sealedPasscodeSecret: try Self.seal(passcodeSecret, to: publicKey, storeID: storeID))
    }

    private static func seal(
        _ secret: PasscodeSecret?, to publicKey: [UInt8], storeID: StoreID
    ) throws(KeychainFailure) -> [UInt8]? {
        guard let secret else { return nil }
        return try SealedBox.seal(secret.bytes, to: publicKey, .passcodeRecovery, storeID: storeID)
    }

    init(encoded: ArraySlice<UInt8>) throws(KeychainFailure) {
        var reader = ByteReader(encoded)
        guard let publicKey = reader.readBytes(Self.publicKeyByteCount), let deviceSecret = reader.readBytes(SealedBox.byteCount) else {
            throw KeybagDocument.malformed()
        }
        var passcodeSecret: [UInt8]?
        if !reader.isAtEnd {
            guard let box = reader.readBytes(SealedBox.byteCount), reader.isAtEnd else { throw KeybagDocument.malformed() }
            passcodeSecret = Array(box)
        }
        self.init(publicKey: Array(publicKey), sealedDeviceSecret: Array(deviceSecret), sealedPasscodeSecret: passcodeSecret)
    }

    var encoded: [UInt8] { publicKey + sealedDeviceSecret + (sealedPasscodeSecret ?? []) }

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

extension KeybagDocument {
    /// Whether the keybag has a recovery key.
    package var hasRecoveryKey: Bool { content.recovery != nil }

    /// Opens the device secret in the copies of a store's keybag with a recovery key.
    ///
    /// The copies are not authenticated yet; the device secret then authenticates them. Throws `.authFailed` if the key is not this
    /// keychain's, and `.notAvailable` if no copy has a recovery key.
    package static func deviceSecret(
        in unauthenticatedCopies: [[UInt8]], openedBy key: RecoveryKey, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        var foundRecord = false
        var failure: KeychainFailure?
        for copy in newestFirst(unauthenticatedCopies) {
            let record: RecoveryRecord
            do throws(KeychainFailure) {
                guard let field = try hint(.recovery, in: copy) else { continue }
                record = try RecoveryRecord(encoded: field)
            } catch {
                failure = error
                continue
            }
            foundRecord = true
            let secret = try record.deviceSecret(openedBy: key, storeID: storeID)
            switch consume secret {
            case .some(let secret): return secret
            case .none: continue
            }
        }
        guard foundRecord else {
            if let failure { throw failure }
            throw KeychainFailure(
                .notAvailable, "this keychain has no recovery key, or its record of it is damaged; nothing was changed", subject: .keybag)
        }
        throw wrongRecoveryKey()
    }

    static func wrongRecoveryKey() -> KeychainFailure {
        KeychainFailure(
            .authFailed, "this is not the recovery key of this keychain: it belongs to another one, or was replaced",
            cause: .wrongRecoveryKey)
    }
}
