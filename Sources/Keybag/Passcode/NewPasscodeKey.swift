// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The key of a passcode that is to be set, with what the keybag must keep to derive it again.
struct NewPasscodeKey: ~Copyable, Sendable {
    let key: SharedSecretBytes
    let record: PasscodeRecord
    /// Both only with the protector tpm2.
    let secret: PasscodeSecret?
    let sealedSecret: SealedObject?

    /// With a fresh salt, and a fresh secret of the TPM.
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
            guard let device else { throw PasscodeKey.noDevice() }
            let fresh = try PasscodeSecret()
            sealed = try fresh.sealed(on: device, stretched: stretched, storeID: storeID)
            return fresh
        }
        self.record = record
        sealedSecret = sealed
    }
}
