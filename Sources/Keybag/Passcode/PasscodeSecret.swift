// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The part of a passcode key that a TPM seals and unseals only with the passcode.
///
/// It is random, and new with each passcode.
///
/// With it every guess needs the TPM, which counts wrong ones.
final class PasscodeSecret: Sendable {
    static let byteCount = SealedBox.secretByteCount

    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) {
        self.bytes = bytes
    }

    /// A random secret.
    convenience init() throws(KeychainFailure) {
        self.init(try SecretBytes(randomByteCount: Self.byteCount))
    }

    /// Unseals the secret with the stretched passcode.
    ///
    /// `object` must come from an authentic keybag. Throws `.authFailed` for a wrong passcode, as the TPM determines it.
    convenience init(
        unsealing object: SealedObject, on device: any SealingDevice, stretched: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) {
        let authorization = try Self.authorization(from: stretched, storeID: storeID)
        let bytes: SecretBytes
        do throws(SealingFailure) {
            bytes = try device.unseal(object, authorization: authorization)
        } catch {
            throw KeychainFailure(error)
        }
        guard bytes.byteCount == Self.byteCount else { throw KeybagDocument.malformed() }
        self.init(bytes)
    }

    func sealed(
        on device: any SealingDevice, stretched: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> SealedObject {
        let authorization = try Self.authorization(from: stretched, storeID: storeID)
        do throws(SealingFailure) {
            return try device.seal(bytes, authorization: authorization)
        } catch {
            throw KeychainFailure(error)
        }
    }

    /// Used only as an authorization, so that neither the TPM nor an eavesdropper on its bus learns input of a key.
    private static func authorization(
        from stretched: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> SealingAuthorization {
        .bytes(try KeyPurpose.tpmAuthorization.derive(from: stretched, storeID: storeID))
    }
}

/// The source of the part of a passcode key that a TPM keeps.
enum PasscodeSecretSource: Sendable {
    /// The TPM; nil without one.
    case device((any SealingDevice)?)
    case recoveryKey(RecoveryKey)
}
