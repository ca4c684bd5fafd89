// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// The private keys of a device: one that signs, and one for the boxes of each lane.
package final class DeviceKeys: CircleDeviceKeys {
    package let publicKeys: DevicePublicKeys
    /// An Ed25519 private key of 32 bytes.
    package let signingKey: SharedSecretBytes
    /// X25519 private keys of 32 bytes.
    ///
    /// The key of a lane whose class is locked is absent.
    private let boxKeys: [Lane: SharedSecretBytes]

    /// Creates random keys.
    package convenience init() throws(KeychainFailure) {
        try self.init(
            signingKey: Self.random(), whenUnlockedBoxKey: Self.random(), afterFirstUnlockBoxKey: Self.random())
    }

    /// Creates the keys of a device from all private keys.
    ///
    /// Throws `.internal` if one is not valid.
    package convenience init(
        signingKey: SharedSecretBytes, whenUnlockedBoxKey: SharedSecretBytes, afterFirstUnlockBoxKey: SharedSecretBytes
    ) throws(KeychainFailure) {
        guard
            let publicKeys = DevicePublicKeys(
                signing: try Self.publicSigningKey(of: signingKey.secret),
                whenUnlockedBox: try SealedBox.publicKey(of: whenUnlockedBoxKey.secret),
                afterFirstUnlockBox: try SealedBox.publicKey(of: afterFirstUnlockBoxKey.secret))
        else { throw KeychainFailure(.internal, "a public key has another size") }
        self.init(
            publicKeys, signingKey: signingKey,
            boxKeys: [.whenUnlocked: whenUnlockedBoxKey, .afterFirstUnlock: afterFirstUnlockBoxKey])
    }

    /// Creates the keys of a device that may be locked: `boxKeys` has the keys of the lanes whose class is available.
    package init(_ publicKeys: DevicePublicKeys, signingKey: SharedSecretBytes, boxKeys: [Lane: SharedSecretBytes]) {
        self.publicKeys = publicKeys
        self.signingKey = signingKey
        self.boxKeys = boxKeys
    }

    package func boxKey(for lane: Lane) throws(KeychainFailure) -> SharedSecretBytes {
        guard let key = boxKeys[lane] else {
            throw KeychainFailure(.interactionNotAllowed, "the keychain is locked, and with it the device's key for these items")
        }
        return key
    }

    package func sign(_ message: [UInt8]) throws(KeychainFailure) -> [UInt8] {
        defer { SecretArena.wipeStack() }
        do {
            return Array(try Self.key(signingKey.secret).signature(for: message))
        } catch {
            throw KeychainFailure(.internal, "a message could not be signed")
        }
    }

    package func openBox(_ box: [UInt8], binding: LaneKeyBox.Binding) throws(KeychainFailure) -> SharedSecretBytes {
        guard let key = try SealedBox.open(box, with: boxKey(for: binding.lane).secret, info: binding.info) else {
            throw KeychainFailure(.decode, "a lane key was altered, or is sealed to another device")
        }
        return SharedSecretBytes(key)
    }

    private static func random() throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: DevicePublicKeys.keyByteCount))
    }

    private static func publicSigningKey(of privateKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        defer { SecretArena.wipeStack() }
        do {
            return Array(try key(privateKey).publicKey.rawRepresentation)
        } catch {
            throw KeychainFailure(.internal, "a private key is not valid")
        }
    }

    private static func key(_ privateKey: borrowing SecretBytes) throws -> Curve25519.Signing.PrivateKey {
        // The bytes are copied within the closure, into memory that swift-crypto wipes.
        try unsafe privateKey.withBytes { try unsafe Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
    }
}
