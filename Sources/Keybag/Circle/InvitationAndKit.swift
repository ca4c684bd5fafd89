// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// Invitations: a code of 125 random bits, which one person reads to another, and the messages that are sealed under it.
///
/// The code has too many bits to be guessed, so a message under it needs no password-authenticated key exchange.
extension CircleCryptography {
    /// 125 bits are 25 characters of five bits each; the last three bits of the 16 bytes are zero.
    static let invitationCodeByteCount = 16
    private static let saltByteCount = 32
    private static let tagByteCount = 16

    package func makeInvitationCode() throws(KeychainFailure) -> SharedSecretBytes {
        let random = try SecretBytes(randomByteCount: Self.invitationCodeByteCount)
        // The bytes are copied within the closures, into a region of the same size.
        return SharedSecretBytes(
            try unsafe SecretBytes(byteCount: Self.invitationCodeByteCount) { buffer in
                unsafe random.withBytes { unsafe buffer.copyMemory(from: $0) }
                unsafe buffer[Self.invitationCodeByteCount - 1] &= 0xF8
            })
    }

    package func invitationID(of code: SharedSecretBytes) throws(KeychainFailure) -> InvitationID {
        var hash = SHA256()
        hash.update(data: CircleLabel.invitation.bytes)
        // The hash reads the bytes within the closure.
        unsafe code.secret.withBytes { unsafe hash.update(bufferPointer: $0) }
        guard let id = InvitationID(Array(hash.finalizeWiping().prefix(16))) else {
            throw KeychainFailure(.internal, "a digest is too short")
        }
        return id
    }

    package func sealJoinMessage(
        _ content: [UInt8], kind: UInt8, code: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8] {
        try sealJoinMessage(content, kind: kind, code: code, salt: randomBytes(Self.saltByteCount))
    }

    /// Seals with a given salt, so that tests can compare with another implementation.
    func sealJoinMessage(
        _ content: [UInt8], kind: UInt8, code: SharedSecretBytes, salt: [UInt8]
    ) throws(KeychainFailure) -> [UInt8] {
        let key = try joinKey(kind: kind, code, salt: salt)
        defer { SecretArena.wipeStackOfCipher() }
        do {
            let box = try AES.GCM.seal(content, using: SymmetricKey(key), nonce: AES.GCM.Nonce(data: Self.nonce))
            return salt + Array(box.ciphertext) + Array(box.tag)
        } catch {
            throw KeychainFailure(.internal, "a message could not be sealed")
        }
    }

    package func openJoinMessage(_ bytes: [UInt8], kind: UInt8, code: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        guard bytes.count >= Self.saltByteCount + Self.tagByteCount else { throw Self.alteredMessage() }
        let key = try joinKey(kind: kind, code, salt: Array(bytes[..<Self.saltByteCount]))
        defer { SecretArena.wipeStackOfCipher() }
        do {
            let box = try AES.GCM.SealedBox(combined: Self.nonce + bytes[Self.saltByteCount...])
            return Array(try AES.GCM.open(box, using: SymmetricKey(key)))
        } catch {
            throw Self.alteredMessage()
        }
    }

    private func joinKey(kind: UInt8, _ code: SharedSecretBytes, salt: [UInt8]) throws(KeychainFailure) -> SecretBytes {
        try KeyDerivation.derive(
            from: code.secret, salt: salt, info: CircleLabel.join.bytes + [kind] + invitationID(of: code).bytes)
    }

    private static func alteredMessage() -> KeychainFailure {
        KeychainFailure(.decode, "a message was altered, or sealed under another code")
    }
}

/// Identities that are no machine: the keys of a device, derived from one secret.
///
/// A recovery kit has 160 random bits, so that a person can write down an owner. A credential has 256, and stands for a reader that any number of
/// machines can be.
extension CircleCryptography {
    private enum DerivedKey: String {
        case signing = "signing"
        case whenUnlockedBox = "box when unlocked"
        case afterFirstUnlockBox = "box after first unlock"
        case circleCode = "circle code"
    }

    package func makeRecoveryKit() throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: RecoveryKey.byteCount))
    }

    package func deviceKeys(ofRecoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys {
        try deviceKeys(of: kit, .recoveryKit)
    }

    package func circleCode(_ circle: CircleID, recoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        Array(try HMACKey(derive(.circleCode, from: kit, .recoveryKit)).authenticationCode { hash in hash.update(data: circle.bytes) })
    }

    package func makeCredentialSecret() throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: Self.credentialSecretByteCount))
    }

    package func deviceKeys(ofCredential secret: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys {
        try deviceKeys(of: secret, .credential)
    }

    private func deviceKeys(of secret: SharedSecretBytes, _ label: CircleLabel) throws(KeychainFailure) -> DeviceKeys {
        try DeviceKeys(
            signingKey: SharedSecretBytes(derive(.signing, from: secret, label)),
            whenUnlockedBoxKey: SharedSecretBytes(derive(.whenUnlockedBox, from: secret, label)),
            afterFirstUnlockBoxKey: SharedSecretBytes(derive(.afterFirstUnlockBox, from: secret, label)))
    }

    private func derive(
        _ key: DerivedKey, from secret: SharedSecretBytes, _ label: CircleLabel
    ) throws(KeychainFailure) -> SecretBytes {
        try KeyDerivation.derive(from: secret.secret, salt: label.bytes, info: Array(key.rawValue.utf8))
    }
}
