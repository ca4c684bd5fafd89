// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials
internal import KeychainCore

/// The key that is derived from a passcode for one keybag, and wraps the class keys that are available only while unlocked.
///
/// The derivation includes the device secret, so a stolen keybag alone permits no guesses. scrypt makes each guess slow.
enum PasscodeKey {
    private static let derivedByteCount = 32

    private static let maximumWaitSeconds: UInt32 = 60

    /// Derives the passcode key.
    ///
    /// `secret` returns the TPM's part of it for the stretched passcode, or nil without a TPM.
    ///
    /// Throws `.notAvailable` if other derivations take too long, `.allocate` if there is no memory for this one, and the errors of
    /// `secret`.
    static func derive(
        from passcode: borrowing Passcode, _ record: PasscodeRecord, deviceSecret: borrowing SecretBytes, storeID: StoreID,
        with secret: (borrowing SecretBytes) throws(KeychainFailure) -> PasscodeSecret?
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, secret: PasscodeSecret?) {
        // The stretched passcode on the stack would make guessing unnecessary.
        defer { SecretArena.wipeStack() }
        let stretched = try stretch(passcode.bytes, record, of: storeID)
        let secret = try secret(stretched)
        return (SharedSecretBytes(try combine(stretched, deviceSecret: deviceSecret, secret, storeID: storeID)), secret)
    }

    /// Derives the passcode key of an authentic keybag.
    ///
    /// Throws the errors above; and with a TPM `.authFailed` for a wrong passcode, and the other errors of `PasscodeSecret`.
    static func derive(
        from passcode: borrowing Passcode, in document: KeybagDocument, deviceSecret: borrowing SecretBytes, _ source: PasscodeSecretSource
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, secret: PasscodeSecret?) {
        guard let record = document.content.passcode else {
            throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet)
        }
        let storeID = document.storeID
        // Missing input is reported before the slow derivation.
        let sealed = document.content.sealedPasscodeSecret
        var recovered: PasscodeSecret?
        var chip: (any SealingDevice)?
        switch source {
        case _ where sealed == nil: break
        case .device(let device):
            guard let device else { throw deviceNotProvided() }
            chip = device
        case .recoveryKey(let key):
            recovered = try document.content.recovery?.passcodeSecret(openedBy: key, storeID: storeID)
            guard recovered != nil else { throw KeybagDocument.wrongRecoveryKey() }
        }
        return try derive(from: passcode, record, deviceSecret: deviceSecret, storeID: storeID) { stretched throws(KeychainFailure) in
            guard let sealed, let chip else { return recovered }
            return try PasscodeSecret(unsealing: sealed, on: chip, stretched: stretched, storeID: storeID)
        }
    }

    static func deviceNotProvided() -> KeychainFailure {
        KeychainFailure(SealingFailure.unavailable("no TPM was provided to this operation"))
    }

    // Not inlined, so that its stack frame lies below the caller's, where the wipe reaches it.
    @inline(never)
    private static func combine(
        _ stretched: borrowing SecretBytes, deviceSecret: borrowing SecretBytes, _ secret: PasscodeSecret?, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        let secretStart = stretched.byteCount + deviceSecret.byteCount
        let stretchedByteCount = stretched.byteCount
        let byteCount = secretStart + (secret?.bytes.byteCount ?? 0)
        // The parts fill the region exactly, and are read within the closures.
        let combined = try unsafe SecretBytes(byteCount: byteCount) { buffer in
            unsafe stretched.withBytes { unsafe buffer.copyMemory(from: $0) }
            unsafe deviceSecret.withBytes { secret in
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[stretchedByteCount...]).copyMemory(from: secret)
            }
            if let secret {
                unsafe secret.bytes.withBytes { secret in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[secretStart...]).copyMemory(from: secret)
                }
            }
        }
        return try KeyPurpose.passcodeKey.derive(from: combined, storeID: storeID)
    }

    /// Derives 32 bytes from the passcode with scrypt: the slow part.
    ///
    /// `store` is the store or the backup whose passcode it is. Throws the errors of `derive`.
    static func stretch(
        _ passcode: borrowing SecretBytes, _ record: PasscodeRecord, of store: Identifier128
    ) throws(KeychainFailure) -> SecretBytes {
        let turn = try DerivationQueue.shared.waitForTurn(
            of: store, byteCount: record.cost.memoryByteCount, withinSeconds: maximumWaitSeconds)
        defer { turn.end() }
        return try SecretBytes(copying: scrypt(passcode, record))
    }

    private static func scrypt(_ passcode: borrowing SecretBytes, _ record: PasscodeRecord) throws(KeychainFailure) -> SymmetricKey {
        let cost = record.cost
        do {
            // The passcode is read in place, within the closure, because a copy would stay in freed memory.
            return try unsafe passcode.withBytes { bytes in
                try unsafe KDF.Scrypt.deriveKey(
                    from: bytes, salt: record.salt, outputByteCount: derivedByteCount, rounds: 1 << Int(cost.roundsExponent),
                    blockSize: Int(cost.blockSize), parallelism: Int(cost.parallelism)
                )
            }
        } catch {
            // With parameters within bounds, scrypt fails only for lack of memory.
            throw KeychainFailure(.allocate, "out of memory: checking a passcode needs \(cost.memoryByteCount >> 20) MiB")
        }
    }
}

/// The key of a new passcode, with the fields that the keybag needs to derive it again.
struct NewPasscodeKey: ~Copyable, Sendable {
    let key: SharedSecretBytes
    let record: PasscodeRecord
    /// Both only with the protector tpm2.
    let secret: PasscodeSecret?
    let sealedSecret: SealedObject?

    /// Derives the key with a random salt and a new secret of the TPM.
    init(
        _ passcode: borrowing Passcode, cost: PasscodeCost, deviceSecret: borrowing SecretBytes, storeID: StoreID,
        protector: DeviceProtectorKind, device: (any SealingDevice)?
    ) throws(KeychainFailure) {
        let record = try PasscodeRecord(cost: cost)
        var sealed: SealedObject?
        (key, secret) = try PasscodeKey.derive(
            from: passcode, record, deviceSecret: deviceSecret, storeID: storeID
        ) { stretched throws(KeychainFailure) in
            guard protector == .tpm2 else { return nil }
            guard let device else { throw PasscodeKey.deviceNotProvided() }
            let fresh = try PasscodeSecret()
            sealed = try fresh.sealed(on: device, stretched: stretched, storeID: storeID)
            return fresh
        }
        self.record = record
        sealedSecret = sealed
    }
}
