// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// A device secret that only one TPM can unseal.
///
/// The sealed secret is in the keybag.
///
/// Unsealing takes up to a second, so the key holder keeps the secret until the system restarts.
package struct TPMProtector: DeviceProtector {
    package let device: any SealingDevice
    let sealedSecret: SealedObject
    private let holder: any KeyHolder

    package init(device: any SealingDevice, sealedSecret: SealedObject, holder: any KeyHolder) {
        self.device = device
        self.sealedSecret = sealedSecret
        self.holder = holder
    }

    package var kind: DeviceProtectorKind { .tpm2 }

    package func location(for storeID: StoreID) -> String { "the TPM at \(device.location)" }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        switch heldSecret(for: storeID) {
        case .some(let held):
            // The bytes are copied within the closure.
            return try unsafe held.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        case .none: return try unsealedSecret()
        }
    }

    /// Returns the secret that is held for this store, which may belong to another keybag; nil if there is none or the holder fails.
    func heldSecret(for storeID: StoreID) -> HeldSecret? {
        do throws(KeychainFailure) {
            let cipher = try HolderPayloadCipher(sealedDeviceSecret: sealedSecret, storeID: storeID)
            guard let held = try holder.load(.device, for: .use, lockEpoch: .unused) else { return nil }
            let secret = try cipher.open(held.secret, in: .device, of: Self.anyKeybag, at: .unused)
            guard let secret, secret.byteCount == DeviceSecret.byteCount else {
                holder.discard(.device, ticket: held.ticket)
                return nil
            }
            return HeldSecret(secret: secret, ticket: held.ticket, timeoutSeconds: held.timeoutSeconds, lockEpoch: held.lockEpoch)
        } catch {
            return nil
        }
    }

    /// The held secret is that of the sealed one, which most changes of the keybag keep.
    private static let anyKeybag = KeybagIdentity(generation: 0)

    /// Whether the TPM is the one that sealed the secret, and was not cleared since.
    ///
    /// Throws if the TPM does not answer.
    func isSealedByPresentTPM() throws(SealingFailure) -> Bool {
        do throws(SealingFailure) {
            return try device.rootKeyName(creatingIfMissing: false) == sealedSecret.rootKeyName
        } catch {
            guard error == .foreignObject else { throw error }
            return false
        }
    }

    /// Asks the TPM for the secret.
    func unsealedSecret() throws(KeychainFailure) -> SecretBytes {
        let secret: SecretBytes
        do throws(SealingFailure) {
            secret = try device.unseal(sealedSecret, authorization: .none)
        } catch {
            throw KeychainFailure(error)
        }
        guard secret.byteCount == DeviceSecret.byteCount else {
            throw KeychainFailure(
                .notAvailable, "the secret that the TPM unsealed is not a device secret",
                subject: .tpm, isDamage: true)
        }
        return secret
    }

    /// Stores a secret that opened the keybag in the holder.
    ///
    /// If the holder has no room, each process asks the TPM.
    static func hold(
        _ secret: borrowing SecretBytes, sealedAs sealedSecret: SealedObject, of storeID: StoreID, in holder: any KeyHolder
    ) {
        do throws(KeychainFailure) {
            let cipher = try HolderPayloadCipher(sealedDeviceSecret: sealedSecret, storeID: storeID)
            let payload = try cipher.seal(secret, in: .device, of: anyKeybag, at: .unused)
            try holder.hold(payload, in: .device, timeoutSeconds: nil, lockEpoch: .unused)
        } catch {
            EngineLog.warn("the device secret is not held, so each program asks the TPM: \(error)")
        }
    }

    /// Seals a new device secret for a keybag.
    static func seal(_ secret: borrowing SecretBytes, on device: any SealingDevice) throws(KeychainFailure) -> SealedObject {
        do throws(SealingFailure) {
            return try device.seal(secret, authorization: .none)
        } catch {
            throw KeychainFailure(error)
        }
    }
}
