// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// A secret of 32 bytes, sealed to a public key: HPKE (RFC 9180) in base mode with X25519, HKDF-SHA256, and AES-256-GCM.
///
///     encapsulated key (32) ‖ sealed secret (32) ‖ tag (16)
///
/// Base mode does not authenticate the sender: anyone can seal a box to a public key. HPKE's `info` binds a box to its purpose.
enum SealedBox {
    static let secretByteCount = 32
    static let byteCount = 80
    private static let encapsulatedByteCount = 32

    /// The purpose of a box.
    ///
    /// HPKE's `info` is the raw value followed by the store's identifier.
    enum Purpose: String {
        case presence = "keychain presence v1"
        case biometry = "keychain biometry v1"
        case recovery = "keychain recovery v1"
        case passcodeRecovery = "keychain passcode recovery v1"

        func info(_ storeID: StoreID) -> Data { Data(rawValue.utf8) + Data(storeID.bytes) }
    }

    private static var ciphersuite: HPKE.Ciphersuite {
        HPKE.Ciphersuite(kem: .Curve25519_HKDF_SHA256, kdf: .HKDF_SHA256, aead: .AES_GCM_256)
    }

    /// The public key of a private key of 32 bytes.
    static func publicKey(of privateKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        defer { SecretArena.wipeStack() }
        do {
            return Array(try key(privateKey).publicKey.rawRepresentation)
        } catch {
            throw KeychainFailure(.internal, "a private key is not valid")
        }
    }

    static func seal(
        _ secret: borrowing SecretBytes, to publicKey: [UInt8], _ purpose: Purpose, storeID: StoreID
    ) throws(KeychainFailure) -> [UInt8] {
        try seal(secret, to: publicKey, info: purpose.info(storeID))
    }

    /// Returns whether a secret that is sealed to this key is secret.
    ///
    /// With a key of a small subgroup, every agreement gives zeros, so anyone can open the box. RFC 9180 (7.1.4) demands a check, which
    /// swift-crypto's HPKE leaves out.
    static func isUsable(_ publicKey: [UInt8]) -> Bool {
        guard let key = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey),
            let agreed = try? Curve25519.KeyAgreement.PrivateKey().sharedSecretFromKeyAgreement(with: key)
        else { return false }
        // The bytes are read within the closure.
        return unsafe agreed.withUnsafeBytes { unsafe $0.contains { $0 != 0 } }
    }

    static func seal(_ secret: borrowing SecretBytes, to publicKey: [UInt8], info: Data) throws(KeychainFailure) -> [UInt8] {
        defer { SecretArena.wipeStack() }
        do {
            let recipient = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
            var sender = try HPKE.Sender(recipientKey: recipient, ciphersuite: ciphersuite, info: info)
            // The bytes are read in place, within the closure.
            let sealed = try unsafe secret.withBytes { try unsafe sender.seal($0) }
            return Array(sender.encapsulatedKey) + Array(sealed)
        } catch {
            throw KeychainFailure(.internal, "a key could not be sealed")
        }
    }

    /// Opens a box; nil if it was altered or sealed to another key.
    static func open(
        _ box: [UInt8], with privateKey: borrowing SecretBytes, _ purpose: Purpose, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes? {
        try open(box, with: privateKey, info: purpose.info(storeID))
    }

    static func open(_ box: [UInt8], with privateKey: borrowing SecretBytes, info: Data) throws(KeychainFailure) -> SecretBytes? {
        guard box.count == byteCount else { return nil }
        defer { SecretArena.wipeStack() }
        guard var opened = try? plaintext(of: box, with: privateKey, info), opened.count == secretByteCount else {
            return nil
        }
        // The buffer is not secret memory, so it is overwritten. Both accesses stay within the closures.
        defer { unsafe opened.withUnsafeMutableBytes { bytes in for index in bytes.indices { unsafe bytes[index] = 0 } } }
        return try unsafe SecretBytes(byteCount: secretByteCount) { buffer in
            unsafe opened.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
        }
    }

    // Not inlined, so that its stack frame lies below the caller's, where the wipe reaches it.
    @inline(never)
    private static func plaintext(of box: [UInt8], with privateKey: borrowing SecretBytes, _ info: Data) throws -> Data {
        var recipient = try HPKE.Recipient(
            privateKey: key(privateKey), ciphersuite: ciphersuite, info: info, encapsulatedKey: Data(box[..<encapsulatedByteCount]))
        return try recipient.open(Data(box[encapsulatedByteCount...]))
    }

    private static func key(_ privateKey: borrowing SecretBytes) throws -> Curve25519.KeyAgreement.PrivateKey {
        // The bytes are copied within the closure, into memory that swift-crypto wipes.
        try unsafe privateKey.withBytes { try unsafe Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
    }
}
