// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A device secret that one chip alone can unseal; what it sealed stands in the keybag.
///
/// Asking the chip takes up to a second, so the secret is left with the key holder until the system restarts.
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

    /// What the holder has for this store, whether or not it is of any use; nil where it has nothing or does not answer.
    func heldSecret(for storeID: StoreID) -> HeldSecret? {
        let held: HeldSecret?
        do throws(KeychainFailure) { held = try holder.load(.device, for: .use) } catch { return nil }
        switch consume held {
        case .none: return nil
        case .some(let held):
            guard HeldDeviceSecret.isOne(held.secret, of: storeID) else {
                holder.discard(.device, ticket: held.ticket)
                return nil
            }
            return held
        }
    }

    /// Whether the chip is the one that sealed the secret, and was not cleared since.
    ///
    /// Throws what asking it throws.
    func isOfPresentChip() throws(SealingFailure) -> Bool {
        do throws(SealingFailure) {
            return try device.rootKeyName(makingOne: false) == sealedSecret.rootKeyName
        } catch {
            guard error == .foreignObject else { throw error }
            return false
        }
    }

    /// What the chip gives.
    func unsealedSecret() throws(KeychainFailure) -> SecretBytes {
        let secret: SecretBytes
        do throws(SealingFailure) {
            secret = try device.unseal(sealedSecret, authorization: .none)
        } catch {
            throw KeychainFailure(error)
        }
        guard secret.byteCount == DeviceSecret.byteCount else {
            throw KeychainFailure(.notAvailable, "what the TPM unsealed is no device secret; nothing was changed", isDamage: true)
        }
        return secret
    }

    /// Leaves a secret that opened the keybag with the holder; without room there every process asks the chip.
    static func hold(_ secret: borrowing SecretBytes, of storeID: StoreID, in holder: any KeyHolder) {
        do throws(KeychainFailure) {
            try holder.hold(
                HeldDeviceSecret.payload(secret, of: storeID), in: .device, timeoutSeconds: nil, lockEpoch: LockEpoch(rawValue: 0))
        } catch {
            EngineLog.warn("the device secret is not held, so each program asks the TPM: \(error)")
        }
    }

    /// What a keybag keeps of a new device secret.
    static func seal(_ secret: borrowing SecretBytes, on device: any SealingDevice) throws(KeychainFailure) -> SealedObject {
        do throws(SealingFailure) {
            return try device.seal(secret, authorization: .none)
        } catch {
            throw KeychainFailure(error)
        }
    }
}

/// What a holder is given of a device secret.
///
///     format (1) = 1 ‖ store id (16) ‖ device secret (32)
///
/// Whether it is the right one the keybag tells, which it authenticates.
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

    static func isOne(_ payload: borrowing SecretBytes, of storeID: StoreID) -> Bool {
        guard payload.byteCount == headByteCount + DeviceSecret.byteCount else { return false }
        // The bytes that are read are none of the secret.
        return unsafe payload.withBytes { unsafe $0.prefix(headByteCount).elementsEqual(head(of: storeID)) }
    }

    /// The secret of a payload that `isOne`.
    static func secret(in payload: borrowing SecretBytes, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard isOne(payload, of: storeID) else { throw KeychainFailure(.internal, "a holder's payload is no device secret") }
        return try unsafe payload.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[headByteCount...]))
        }
    }
}
