// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The key of a passcode that is to be set, with what the keybag must keep to derive it again.
struct NewPasscodeKey: ~Copyable, Sendable {
    let key: SecretBytes
    let record: PasscodeRecord
    /// Both only with the protector tpm2.
    let secret: PasscodeSecret?
    let sealedSecret: SealedObject?

    /// With a fresh salt, and a fresh secret of the TPM.
    init(
        _ passcode: borrowing Passcode, cost: PasscodeCost, deviceSecret: borrowing SecretBytes, storeID: StoreID,
        protector: DeviceProtectorKind, device: (any SealingDevice)?
    ) throws(KeychainFailure) {
        // Whoever found the stretched passcode on the stack would need no guess.
        defer { SecretArena.wipeStack() }
        let record = try PasscodeRecord(cost: cost)
        let stretched = try PasscodeKey.stretch(passcode.bytes, record)
        var secret: PasscodeSecret?
        var sealed: SealedObject?
        if protector == .tpm2 {
            guard let device else { throw PasscodeKey.noDevice() }
            let fresh = try PasscodeSecret()
            sealed = try fresh.sealed(on: device, stretched: stretched, storeID: storeID)
            secret = fresh
        }
        key = try PasscodeKey.combine(stretched, deviceSecret: deviceSecret, secret, storeID: storeID)
        self.record = record
        self.secret = secret
        sealedSecret = sealed
    }
}
