// SPDX-License-Identifier: Apache-2.0

/// The cryptography of a circle of devices.
///
/// Implemented by Keybag. It knows no formats: callers pass the bytes to which each ciphertext is bound.
package protocol CircleCipher: Sendable {
    /// Returns the SHA-256 of bytes.
    func hash(_ bytes: [UInt8]) -> ObjectHash

    /// Returns random bytes for identifiers and nonces in join messages.
    func randomBytes(_ byteCount: Int) throws(KeychainFailure) -> [UInt8]

    /// Returns whether an Ed25519 signature is valid. Invalid keys and signatures of any size are not.
    func isValid(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool

    // Lane keys

    /// Creates a random lane key of 32 bytes.
    func makeLaneKey() throws(KeychainFailure) -> SharedSecretBytes

    /// Returns the first 16 bytes of SHA-256(label ‖ circle ‖ lane ‖ key).
    func laneKeyID(of key: SharedSecretBytes, circle: CircleID, lane: Lane) throws(KeychainFailure) -> LaneKeyID

    /// Returns whether lane keys can be sealed to a public key: one of the curve, and not of a small subgroup, which a hostile device may have made.
    func isUsable(boxKey publicKey: [UInt8]) -> Bool

    /// Seals a lane key to a device's public box key (HPKE, X25519). The result has `LaneKeyBox.byteCount` bytes.
    ///
    /// The box is bound to everything in `binding`. Throws `.parameter` if the public key is not usable.
    func sealBox(
        _ key: SharedSecretBytes, binding: LaneKeyBox.Binding, to publicKey: [UInt8]
    ) throws(KeychainFailure) -> [UInt8]

    /// Wraps an older lane key under a newer one (RFC 3394). The result has 40 bytes.
    func wrap(_ key: SharedSecretBytes, under newerKey: SharedSecretBytes) throws(KeychainFailure) -> [UInt8]

    /// Opens `wrap`. Throws `.decode` if the bytes are not of this key.
    func unwrap(_ bytes: [UInt8], under newerKey: SharedSecretBytes) throws(KeychainFailure) -> SharedSecretBytes

    // Batches and pieces of checkpoints

    /// Pads and seals a content under a fresh key, which is wrapped under the lane key.
    ///
    /// The content's key is HKDF(32 random bytes, SHA-256(content), header), so that a machine that is resumed twice with the same random
    /// generator does not use one key for two contents. The ciphertext is bound to the header and the wrapped key.
    func seal(
        _ content: [UInt8], header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> SealedContent

    /// Opens `seal`. Throws `.decode` if any part was altered, or is of another header or key.
    func open(
        _ sealed: SealedContent, header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8]

    // Joining

    /// Creates the code of an invitation: 125 random bits.
    func makeInvitationCode() throws(KeychainFailure) -> SharedSecretBytes

    func invitationID(of code: SharedSecretBytes) throws(KeychainFailure) -> InvitationID

    /// Seals a message under HKDF(code, 32 random bytes, label ‖ kind ‖ invitation). The random bytes come first.
    func sealJoinMessage(
        _ content: [UInt8], kind: UInt8, code: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8]

    /// Opens `sealJoinMessage`. Throws `.decode` for a message of another kind or code.
    func openJoinMessage(_ bytes: [UInt8], kind: UInt8, code: SharedSecretBytes) throws(KeychainFailure) -> [UInt8]

    /// Returns the text of a secret that a person writes down or reads to another, in groups of four characters.
    func text(of secret: SharedSecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SecretBytes

    /// Parses a typed text. Case, blanks, and dashes do not matter.
    ///
    /// Throws `.parameter` for other text, with the cause `.mistyped` if the checksum is wrong.
    func secret(typed text: borrowing SecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SharedSecretBytes

    // Identities

    /// Creates the private keys of a device.
    func makeDeviceKeys() throws(KeychainFailure) -> any CircleDeviceKeys

    /// Creates the secret of a recovery kit.
    func makeRecoveryKit() throws(KeychainFailure) -> SharedSecretBytes

    /// Returns the private keys of the device that a recovery kit is.
    func deviceKeys(ofRecoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys

    /// Returns the code of 32 bytes by which the holder of a kit recognizes its circle.
    ///
    /// The statement that admits the kit carries it, so storage cannot offer the kit a made-up circle.
    func circleCode(_ circle: CircleID, recoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> [UInt8]

    /// Creates the secret of a credential: `credentialSecretByteCount` random bytes.
    func makeCredentialSecret() throws(KeychainFailure) -> SharedSecretBytes

    /// Returns the private keys of the reader that a credential stands for.
    func deviceKeys(ofCredential secret: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys
}

extension CircleCipher {
    /// The size of the secret of a credential.
    package static var credentialSecretByteCount: Int { 32 }
}

/// A secret of a circle that has a text form.
package enum WrittenSecret: CaseIterable, Sendable {
    /// The code of an invitation: seven groups, of which the last three characters are the checksum.
    case invitationCode
    /// Nine groups, of which the last one is the checksum.
    case recoveryKit
}

/// The private keys of a device in a circle.
///
/// The keys of each lane have that lane's class: using one throws `.interactionNotAllowed` while the class is locked.
package protocol CircleDeviceKeys: Sendable {
    var publicKeys: DevicePublicKeys { get }

    /// Returns an Ed25519 signature.
    func sign(_ message: [UInt8]) throws(KeychainFailure) -> [UInt8]

    /// Opens a box that is sealed to this device. Throws `.decode` if it was altered, or is bound to something else.
    func openBox(_ box: [UInt8], binding: LaneKeyBox.Binding) throws(KeychainFailure) -> SharedSecretBytes
}

/// A lane key sealed to one device.
package enum LaneKeyBox {
    /// The size of a box: an encapsulated key of 32 bytes, the key, and a tag of 16 bytes.
    package static let byteCount = 80

    /// What a box is bound to: HPKE info = label ‖ circle ‖ lane ‖ key id ‖ device.
    package struct Binding: Hashable, Sendable {
        package let circle: CircleID
        package let lane: Lane
        package let key: LaneKeyID
        package let device: DeviceID

        package init(circle: CircleID, lane: Lane, key: LaneKeyID, device: DeviceID) {
            self.circle = circle
            self.lane = lane
            self.key = key
            self.device = device
        }
    }
}

/// A sealed content and its key, which is wrapped under a lane key.
package struct SealedContent: Hashable, Sendable {
    /// 40 bytes.
    package let wrappedKey: [UInt8]
    package let ciphertext: [UInt8]

    package static let wrappedKeyByteCount = 40

    package init(wrappedKey: [UInt8], ciphertext: [UInt8]) {
        self.wrappedKey = wrappedKey
        self.ciphertext = ciphertext
    }
}
