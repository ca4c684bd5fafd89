// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The part of a passcode key that a TPM keeps, and gives out only to who knows the passcode: random, and new with each passcode.
///
/// So a guess needs the chip, which counts the wrong ones.
final class PasscodeSecret: Sendable {
    static let byteCount = SealedBox.secretByteCount

    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) {
        self.bytes = bytes
    }

    /// A fresh one.
    convenience init() throws(KeychainFailure) {
        self.init(try SecretBytes(randomByteCount: Self.byteCount))
    }

    /// What the chip gives for the passcode that `stretched` comes from.
    ///
    /// `object` must come from an authentic keybag. Throws `.authFailed` for a wrong passcode, which only the chip can tell.
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

    /// Used for nothing else: the chip, and whoever listens to it, learns nothing that a key is made of.
    private static func authorization(
        from stretched: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> SealingAuthorization {
        .bytes(try KeyPurpose.tpmAuthorization.derive(from: stretched, storeID: storeID))
    }
}

/// Who gives the part of a passcode key that a TPM keeps.
enum PasscodeSecretSource: Sendable {
    /// The chip; nil where there is none.
    case device((any SealingDevice)?)
    case recoveryKey(RecoveryKey)
}
