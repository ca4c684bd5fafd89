// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// The cryptography of a circle of devices, with swift-crypto: Ed25519, HPKE, AES-256-GCM, AES key wrap, HKDF, and SHA-256.
///
/// Formats and the reasons for them are in "How synchronization works".
package struct CircleCryptography: CircleCipher {
    package init() {}

    /// The nonce of contents and join messages, each of which has a key of its own.
    static let nonce = [UInt8](repeating: 0, count: 12)

    // A digest has 32 bytes, so the alternative is never taken.
    package func hash(_ bytes: [UInt8]) -> ObjectHash { ObjectHash(Array(SHA256.hash(data: bytes))) ?? .none }

    package func randomBytes(_ byteCount: Int) throws(KeychainFailure) -> [UInt8] {
        let bytes = try SecretBytes(randomByteCount: byteCount)
        // The bytes are copied within the closure. They are public values.
        return unsafe bytes.withBytes { unsafe Array($0) }
    }

    package func isValid(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey) else { return false }
        return key.isValidSignature(signature, for: message)
    }

    package func makeDeviceKeys() throws(KeychainFailure) -> any CircleDeviceKeys { try DeviceKeys() }
}

/// The labels that separate the uses of hashes, keys, and boxes.
///
/// They are part of the formats.
enum CircleLabel: String {
    case laneKey = "keychain sync lane key v1"
    case box = "keychain sync box v1"
    case content = "keychain sync content v1"
    case invitation = "keychain sync invitation v1"
    case join = "keychain sync join v1"
    case recoveryKit = "keychain sync recovery kit v1"
    case credential = "keychain sync credential v1"

    var bytes: [UInt8] { Array(rawValue.utf8) }
}

/// Lane keys: random keys of 32 bytes, one for each generation of a lane.
extension CircleCryptography {
    package func makeLaneKey() throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: KeyWrapping.keyByteCount))
    }

    package func laneKeyID(of key: SharedSecretBytes, circle: CircleID, lane: Lane) throws(KeychainFailure) -> LaneKeyID {
        var hash = SHA256()
        hash.update(data: CircleLabel.laneKey.bytes + circle.bytes + [lane.rawValue])
        // The hash reads the bytes within the closure.
        unsafe key.secret.withBytes { unsafe hash.update(bufferPointer: $0) }
        guard let id = LaneKeyID(Array(hash.finalizeWiping().prefix(16))) else {
            throw KeychainFailure(.internal, "a digest is too short")
        }
        return id
    }

    package func isUsable(boxKey publicKey: [UInt8]) -> Bool { SealedBox.isUsable(publicKey) }

    package func sealBox(
        _ key: SharedSecretBytes, binding: LaneKeyBox.Binding, to publicKey: [UInt8]
    ) throws(KeychainFailure) -> [UInt8] {
        guard isUsable(boxKey: publicKey) else {
            throw KeychainFailure(.parameter, "nothing can be sealed to the public key of a device")
        }
        return try SealedBox.seal(key.secret, to: publicKey, info: binding.info)
    }

    package func wrap(_ key: SharedSecretBytes, under newerKey: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        try KeyWrapping.wrap(SymmetricKey(key.secret), under: newerKey.secret)
    }

    package func unwrap(_ bytes: [UInt8], under newerKey: SharedSecretBytes) throws(KeychainFailure) -> SharedSecretBytes {
        guard let key = KeyWrapping.unwrap(bytes, under: newerKey.secret) else {
            throw KeychainFailure(.decode, "an older lane key was altered, or is wrapped under another key")
        }
        return SharedSecretBytes(try SecretBytes(copying: key))
    }
}

extension LaneKeyBox.Binding {
    /// HPKE's `info`.
    var info: Data { Data(CircleLabel.box.bytes + circle.bytes + [lane.rawValue] + key.bytes + device.bytes) }
}

/// The contents of batches and of pieces of checkpoints.
extension CircleCryptography {
    package func seal(
        _ content: [UInt8], header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> SealedContent {
        try seal(content, header: header, under: laneKey, random: SecretBytes(randomByteCount: KeyWrapping.keyByteCount))
    }

    /// Seals with given random bytes, so that tests can compare with another implementation.
    func seal(
        _ content: [UInt8], header: [UInt8], under laneKey: SharedSecretBytes, random: consuming SecretBytes
    ) throws(KeychainFailure) -> SealedContent {
        // The content is part of the derivation: a machine that is resumed twice has the same random bytes, but not for another content.
        let derived = try KeyDerivation.derive(
            from: random, salt: hash(content).bytes, info: CircleLabel.content.bytes + header)
        let key = SymmetricKey(derived)
        let wrappedKey = try KeyWrapping.wrap(key, under: laneKey.secret)
        defer { SecretArena.wipeStackOfCipher() }
        do {
            let box = try AES.GCM.seal(
                PartPadding.padded(content.span, isPresent: true), using: key, nonce: AES.GCM.Nonce(data: Self.nonce),
                authenticating: header + wrappedKey)
            return SealedContent(wrappedKey: wrappedKey, ciphertext: Array(box.ciphertext) + Array(box.tag))
        } catch {
            throw KeychainFailure(.internal, "a content could not be sealed")
        }
    }

    package func open(
        _ sealed: SealedContent, header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8] {
        guard let key = KeyWrapping.unwrap(sealed.wrappedKey, under: laneKey.secret) else { throw Self.alteredContent() }
        defer { SecretArena.wipeStackOfCipher() }
        let plaintext: [UInt8]
        do {
            let box = try AES.GCM.SealedBox(combined: Self.nonce + sealed.ciphertext)
            plaintext = Array(try AES.GCM.open(box, using: key, authenticating: header + sealed.wrappedKey))
        } catch {
            throw Self.alteredContent()
        }
        guard case .present(let byteCount)? = PartPadding.content(of: plaintext.span) else { throw Self.alteredContent() }
        return Array(plaintext[..<byteCount])
    }

    private static func alteredContent() -> KeychainFailure {
        KeychainFailure(.decode, "a content was altered, or sealed under another key")
    }
}
