// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// The key pair that proves user presence.
///
/// Only the passcode key wraps its private key.
///
/// Items that require user presence are sealed to the public key, so adding one requires no authentication.
final class PresenceKeyPair: Sendable {
    static let keyByteCount = 32

    let publicKey: [UInt8]
    let privateKey: SecretBytes

    /// A random pair.
    convenience init() throws(KeychainFailure) {
        try self.init(privateKey: SecretBytes(randomByteCount: Self.keyByteCount))
    }

    init(privateKey: consuming SecretBytes) throws(KeychainFailure) {
        publicKey = try SealedBox.publicKey(of: privateKey)
        self.privateKey = privateKey
    }

    /// Unwraps the pair of a record; nil if it was wrapped under another passcode key.
    ///
    /// Throws `.notAvailable` if the public key does not belong to the private key.
    convenience init?(
        unwrapping record: PresenceRecord, under passcodeKey: borrowing SecretBytes
    ) throws(KeychainFailure) {
        guard let key = KeyWrapping.unwrap(record.wrappedPrivateKey, under: passcodeKey) else { return nil }
        try self.init(privateKey: SecretBytes(copying: key))
        guard publicKey == record.publicKey else { throw KeybagDocument.malformed() }
    }

    /// The stored form of the pair.
    func record(under passcodeKey: borrowing SecretBytes) throws(KeychainFailure) -> PresenceRecord {
        PresenceRecord(
            publicKey: publicKey, wrappedPrivateKey: try KeyWrapping.wrap(SymmetricKey(privateKey), under: passcodeKey))
    }
}

/// A presence key pair as stored in a keybag.
///
///     public key (32) ‖ Wrap(passcode key, private key) (40)
struct PresenceRecord: Hashable, Sendable {
    let publicKey: [UInt8]
    let wrappedPrivateKey: [UInt8]

    init(publicKey: [UInt8], wrappedPrivateKey: [UInt8]) {
        self.publicKey = publicKey
        self.wrappedPrivateKey = wrappedPrivateKey
    }

    init(encoded: ArraySlice<UInt8>) throws(KeychainFailure) {
        var reader = ByteReader(encoded)
        guard let publicKey = reader.readBytes(PresenceKeyPair.keyByteCount),
            let wrapped = reader.readBytes(KeyWrapping.wrappedByteCount), reader.isAtEnd
        else { throw KeybagDocument.malformed() }
        self.publicKey = Array(publicKey)
        wrappedPrivateKey = Array(wrapped)
    }

    var encoded: [UInt8] { publicKey + wrappedPrivateKey }
}
