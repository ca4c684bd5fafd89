// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// A recovery key: 160 random bits that a person keeps on paper in case the protector is lost.
///
/// A key pair is derived from them. The keybag has the public key, so that a new device secret can be sealed without the recovery key.
package final class RecoveryKey: Sendable {
    static let byteCount = 20

    let bits: SecretBytes

    init(bits: consuming SecretBytes) {
        self.bits = bits
    }

    /// A random recovery key.
    package convenience init() throws(KeychainFailure) {
        self.init(bits: try SecretBytes(randomByteCount: Self.byteCount))
    }

    /// The private key for one store.
    func privateKey(storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        try KeyPurpose.recoveryKey.derive(from: bits, storeID: storeID)
    }

    func publicKey(storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        try SealedBox.publicKey(of: privateKey(storeID: storeID))
    }

    /// The key that authenticates the recovery record of one store.
    func authenticationKey(storeID: StoreID) throws(KeychainFailure) -> HMACKey {
        try HMACKey(KeyPurpose.recoveryAuthentication.derive(from: bits, storeID: storeID))
    }
}

/// The text form of a recovery key: nine groups of four characters, the last group being the checksum.
extension RecoveryKey {
    /// The characters and the dashes between groups.
    package static let textByteCount = SecretText.recoveryKey.textByteCount

    /// Returns the text, in secret memory.
    package func text() throws(KeychainFailure) -> SecretBytes { try SecretText.recoveryKey.text(of: bits) }

    /// Parses a typed recovery key.
    ///
    /// Case, blanks, and dashes do not matter; O counts as 0, and I and L count as 1.
    ///
    /// Throws `.parameter` for other text, with the cause `.mistyped` if the checksum is wrong.
    package convenience init(typed text: UnsafeRawBufferPointer) throws(KeychainFailure) {
        self.init(bits: try unsafe SecretText.recoveryKey.secret(typed: text))
    }
}
