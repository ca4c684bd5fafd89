// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What a keybag keeps for a recovery key.
///
///     public half (32) ‖ device secret, sealed (80) ‖ with the protector tpm2 and a passcode: the TPM's part of its key, sealed (80)
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

    /// The same for another passcode, or for none.
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

    /// Nil when the key is not this record's, or the record was altered.
    func deviceSecret(openedBy key: RecoveryKey, storeID: StoreID) throws(KeychainFailure) -> SecretBytes? {
        try SealedBox.open(sealedDeviceSecret, with: key.privateKey(storeID: storeID), .recovery, storeID: storeID)
    }

    /// Nil when there is none, or as above.
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
    /// Whether a recovery key opens it.
    package var hasRecoveryKey: Bool { content.recovery != nil }

    /// The device secret that the copies of a store's keybag give for a recovery key.
    ///
    /// Nothing here is authentic yet: what is found proves or refutes the keybag, as that of a protector does. Throws `.authFailed`
    /// when the key is not this keychain's, `.notAvailable` when no copy knows of one.
    package static func deviceSecret(
        in unauthenticatedCopies: [[UInt8]], openedBy key: RecoveryKey, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        var isAnyThere = false
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
            isAnyThere = true
            let secret = try record.deviceSecret(openedBy: key, storeID: storeID)
            switch consume secret {
            case .some(let secret): return secret
            case .none: continue
            }
        }
        guard isAnyThere else {
            if let failure { throw failure }
            throw KeychainFailure(
                .notAvailable, "this keychain has no recovery key, or what it keeps for it is damaged; nothing was changed")
        }
        throw wrongRecoveryKey()
    }

    static func wrongRecoveryKey() -> KeychainFailure {
        KeychainFailure(.authFailed, "this is not the recovery key of this keychain: it is another one's, or a later one took its place")
    }
}
