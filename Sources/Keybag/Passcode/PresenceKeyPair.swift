// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// What proves that a person was there: the private half is under the passcode, and under nothing else.
///
/// Items that need the person are sealed to the public half, so adding one asks nobody.
final class PresenceKeyPair: Sendable {
    static let keyByteCount = 32

    let publicKey: [UInt8]
    let privateKey: SecretBytes

    /// A fresh pair.
    convenience init() throws(KeychainFailure) {
        try self.init(privateKey: SecretBytes(randomByteCount: Self.keyByteCount))
    }

    init(privateKey: consuming SecretBytes) throws(KeychainFailure) {
        publicKey = try SealedBox.publicKey(of: privateKey)
        self.privateKey = privateKey
    }

    /// The pair of a record; nil when it was wrapped under another passcode key.
    ///
    /// Throws `.notAvailable` when the halves do not belong together.
    convenience init?(
        unwrapping record: PresenceRecord, under passcodeKey: borrowing SecretBytes
    ) throws(KeychainFailure) {
        guard let key = KeyWrapping.unwrap(record.wrappedPrivateKey, under: passcodeKey) else { return nil }
        try self.init(privateKey: SecretBytes(copying: key))
        guard publicKey == record.publicKey else { throw KeybagDocument.malformed() }
    }

    /// The pair as a keybag keeps it.
    func record(under passcodeKey: borrowing SecretBytes) throws(KeychainFailure) -> PresenceRecord {
        PresenceRecord(
            publicKey: publicKey, wrappedPrivateKey: try KeyWrapping.wrap(SymmetricKey(privateKey), under: passcodeKey))
    }
}

/// The presence key pair as a keybag keeps it.
///
///     public half (32) ‖ Wrap(passcode key, private half) (40)
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
