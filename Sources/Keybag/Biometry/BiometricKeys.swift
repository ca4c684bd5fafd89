// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// The biometric keys of one keychain: private keys to which the keys of items are sealed.
///
/// One is for each set of fingers. The other is for the set of one generation, and is replaced when that changes.
///
/// The stored form is wrapped under a secret that only keychaind has, and bound to the generation and the set of fingers:
///
///     version (1) = 1 ‖ generation (8) ‖ evidence (1) ‖ digest of the set (32) ‖ digest of the names (32)
///         ‖ Wrap(K, any set) (40) ‖ Wrap(K, this set) (40)
///     K = HKDF(secret, salt = store, info = "keychain biometric keys v1" ‖ the bytes from the generation to the digests)
package final class BiometricKeys: Sendable {
    private static let version: UInt8 = 1
    package static let secretByteCount = 32

    package let set: FingerprintSet
    package let enrollment: BiometricEnrollment
    private let storeID: StoreID
    private let anyKey: SharedSecretBytes
    private let currentSetKey: SharedSecretBytes

    init(
        storeID: StoreID, generation: UInt64, set: FingerprintSet, anyKey: SharedSecretBytes, currentSetKey: SharedSecretBytes
    ) throws(KeychainFailure) {
        self.storeID = storeID
        self.set = set
        self.anyKey = anyKey
        self.currentSetKey = currentSetKey
        let anyPublicKey = try SealedBox.publicKey(of: anyKey.secret)
        // The key of all sets stays, so it names the keys of all generations.
        let name = Array(SHA256.hash(data: anyPublicKey).prefix(BiometricSetID.keysByteCount))
        enrollment = BiometricEnrollment(
            setID: BiometricSetID(keys: name, generation: generation), anyPublicKey: anyPublicKey,
            currentSetPublicKey: try SealedBox.publicKey(of: currentSetKey.secret))
    }

    /// Random keys for the first set of fingers.
    package convenience init(for set: FingerprintSet, storeID: StoreID) throws(KeychainFailure) {
        try self.init(storeID: storeID, generation: 1, set: set, anyKey: Self.randomKey(), currentSetKey: Self.randomKey())
    }

    /// The same keys for the same set of fingers, of which more is known now.
    package func noting(set: FingerprintSet) throws(KeychainFailure) -> BiometricKeys {
        try BiometricKeys(
            storeID: storeID, generation: enrollment.setID.generation, set: set, anyKey: anyKey, currentSetKey: currentSetKey)
    }

    /// The keys after the set of fingers has changed: the key of the former set is gone with these.
    package func replacing(set: FingerprintSet) throws(KeychainFailure) -> BiometricKeys {
        try BiometricKeys(
            storeID: storeID, generation: enrollment.setID.generation + 1, set: set, anyKey: anyKey, currentSetKey: Self.randomKey())
    }

    private static func randomKey() throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: SealedBox.secretByteCount))
    }

    /// The keys that a match permits to use.
    ///
    /// Both: a finger that matches is one of the present set, and a context keeps one release.
    package func release() -> BiometricRelease {
        BiometricRelease(storeID: storeID, setID: enrollment.setID, anyKey: anyKey, currentSetKey: currentSetKey)
    }

    // MARK: The stored form

    /// The name of the keys that a secret wraps.
    ///
    /// A keychain that comes from another machine has keys of another name, which are left alone.
    package static func name(for secret: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) -> String {
        let bytes = try KeyPurpose.biometricKeysName.deriveBytes(from: secret, storeID: storeID, context: [], byteCount: 8)
        return bytes.map { byte in
            let digits = Array("0123456789abcdef")
            return String([digits[Int(byte >> 4)], digits[Int(byte & 15)]])
        }.joined()
    }

    /// A value that changes with the set, and that programs of other users or machines cannot compare.
    package static func state(of digest: [UInt8], under secret: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) -> [UInt8]
    {
        try KeyPurpose.biometryState.deriveBytes(from: secret, storeID: storeID, context: digest, byteCount: 32)
    }

    package func encoded(under secret: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        var context: [UInt8] = []
        context.append(littleEndian: enrollment.setID.generation)
        context.append(set.evidence.rawValue)
        context += set.digest + set.namesDigest
        let key = try KeyPurpose.biometricKeys.derive(from: secret, storeID: storeID, context: context)
        return [Self.version] + context + (try KeyWrapping.wrap(SymmetricKey(anyKey.secret), under: key))
            + (try KeyWrapping.wrap(SymmetricKey(currentSetKey.secret), under: key))
    }

    /// Parses and unwraps the stored form.
    ///
    /// Throws `.decode` if it was altered, wrapped under another secret, or written by a newer version.
    package convenience init(
        encoded: [UInt8], under secret: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) {
        var reader = ByteReader(encoded)
        guard reader.readByte() == Self.version else {
            throw KeychainFailure(.decode, "the biometric keys were written by a newer version", cause: .newerVersion)
        }
        guard let generation = reader.readUInt64(), let evidence = reader.readByte().flatMap(FingerprintSet.Evidence.init),
            let digest = reader.readBytes(FingerprintSet.digestByteCount).map(Array.init),
            let namesDigest = reader.readBytes(FingerprintSet.digestByteCount).map(Array.init),
            evidence == .prints || digest == namesDigest,
            let wrappedAnyKey = reader.readBytes(KeyWrapping.wrappedByteCount),
            let wrappedSetKey = reader.readBytes(KeyWrapping.wrappedByteCount), reader.isAtEnd
        else { throw KeychainFailure(.decode, "the biometric keys are not in the form of this version", cause: .malformed) }
        let key = try KeyPurpose.biometricKeys.derive(
            from: secret, storeID: storeID, context: Array(encoded[1..<10 + 2 * FingerprintSet.digestByteCount]))
        guard let anyKey = KeyWrapping.unwrap(Array(wrappedAnyKey), under: key),
            let setKey = KeyWrapping.unwrap(Array(wrappedSetKey), under: key)
        else { throw KeychainFailure(.decode, "the biometric keys were altered, or wrapped under another secret", cause: .damaged) }
        try self.init(
            storeID: storeID, generation: generation,
            set: FingerprintSet(printsDigest: evidence == .prints ? digest : nil, namesDigest: namesDigest),
            anyKey: SharedSecretBytes(SecretBytes(copying: anyKey)), currentSetKey: SharedSecretBytes(SecretBytes(copying: setKey)))
    }
}

/// The digests of sets of fingers.
package enum FingerprintDigest {
    /// The digest of the prints: SHA-256 over the path, the byte count, and the content of each file, in the order of the paths.
    ///
    /// Path and content follow their byte counts of eight bytes.
    package static func ofPrints(_ files: [(path: [UInt8], content: [UInt8])]) -> [UInt8] {
        var hash = SHA256()
        for file in files.sorted(by: { $0.path.lexicographicallyPrecedes($1.path) }) {
            for part in [file.path, file.content] {
                var count: [UInt8] = []
                count.append(littleEndian: UInt64(part.count))
                hash.update(data: count)
                hash.update(data: part)
            }
        }
        return Array(hash.finalize())
    }

    /// The digest of the names of a reader and of the enrolled fingers.
    package static func ofNames(reader: String, fingers: [String]) -> [UInt8] {
        ofPrints([(Array(reader.utf8), Array(fingers.sorted().joined(separator: "\n").utf8))])
    }
}
