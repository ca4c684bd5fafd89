// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A device secret that only one TPM can unseal.
///
/// The sealed secret is in the keybag.
///
/// Unsealing takes up to a second, so the key holder keeps the secret until the system restarts.
package struct TPMProtector: DeviceProtector {
    package let device: any SealingDevice
    private let sealedSecret: SealedObject
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
        case .some(let held): return try HeldDeviceSecret.secret(in: held.secret, of: storeID)
        case .none: return try unsealedSecret()
        }
    }

    /// Returns the secret that is held for this store, which may belong to another keybag; nil if there is none or the holder fails.
    func heldSecret(for storeID: StoreID) -> HeldSecret? {
        let held: HeldSecret?
        do throws(KeychainFailure) { held = try holder.load(.device, for: .use, lockEpoch: .unused) } catch { return nil }
        switch consume held {
        case .none: return nil
        case .some(let held):
            guard HeldDeviceSecret.isDeviceSecretPayload(held.secret, of: storeID) else {
                holder.discard(.device, ticket: held.ticket)
                return nil
            }
            return held
        }
    }

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
                .notAvailable, "the secret that the TPM unsealed is not a device secret; nothing was changed",
                subject: .tpm, isDamage: true)
        }
        return secret
    }

    /// Stores a secret that opened the keybag in the holder.
    ///
    /// If the holder has no room, each process asks the TPM.
    static func hold(_ secret: borrowing SecretBytes, of storeID: StoreID, in holder: any KeyHolder) {
        do throws(KeychainFailure) {
            try holder.hold(
                HeldDeviceSecret.payload(secret, of: storeID), in: .device, timeoutSeconds: nil, lockEpoch: .unused)
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

/// The payload of a device secret in a key holder.
///
///     format (1) = 1 ‖ store id (16) ‖ device secret (32)
///
/// The payload does not prove that the secret is the right one: that is authenticated by opening the keybag.
enum HeldDeviceSecret {
    private static let format: UInt8 = 1
    private static let headByteCount = 1 + StoreID.byteCount

    private static func head(of storeID: StoreID) -> [UInt8] { [format] + storeID.bytes }

    static func payload(_ secret: borrowing SecretBytes, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        // Head and secret fill the region exactly, and are copied within the closures.
        try unsafe SecretBytes(byteCount: headByteCount + secret.byteCount) { buffer in
            unsafe buffer.copyBytes(from: head(of: storeID))
            unsafe secret.withBytes { unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[headByteCount...]).copyMemory(from: $0) }
        }
    }

    static func isDeviceSecretPayload(_ payload: borrowing SecretBytes, of storeID: StoreID) -> Bool {
        guard payload.byteCount == headByteCount + DeviceSecret.byteCount else { return false }
        // Reads the head only, not the secret.
        return unsafe payload.withBytes { unsafe $0.prefix(headByteCount).elementsEqual(head(of: storeID)) }
    }

    /// Returns the secret of a payload for that store.
    static func secret(in payload: borrowing SecretBytes, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard isDeviceSecretPayload(payload, of: storeID) else {
            throw KeychainFailure(.internal, "a holder's payload is no device secret")
        }
        return try unsafe payload.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[headByteCount...]))
        }
    }
}
