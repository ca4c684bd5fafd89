// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// The two keys of a backup.
///
/// They are derived from its password alone, without the device secret, so that the backup opens on any device.
struct BackupKeys: ~Copyable {
    /// Authenticates the header.
    private let headerKey: HMACKey
    /// Seals the chunks.
    private let chunkKey: SecretBytes

    /// A copy of the chunk key for a cipher.
    borrowing func copiedChunkKey() throws(KeychainFailure) -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe chunkKey.withBytes { bytes throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }

    /// The `info` strings of the derivation.
    ///
    /// They are part of the format.
    private enum Purpose: String {
        case header = "keychain backup header mac v1"
        case chunks = "keychain backup chunks v1"
    }

    /// Derives the keys.
    ///
    /// Slow: the record determines the cost.
    static func derive(
        from password: borrowing Passcode, _ record: PasscodeRecord, backupID: Identifier128
    ) throws(KeychainFailure) -> BackupKeys {
        // The stretched password on the stack would make guessing unnecessary.
        defer { SecretArena.wipeStack() }
        return try BackupKeys(password, record, backupID)
    }

    // Not inlined, so that its stack frame lies below the caller's, where the wipe reaches it.
    @inline(never)
    private init(_ password: borrowing Passcode, _ record: PasscodeRecord, _ backupID: Identifier128) throws(KeychainFailure) {
        let stretched = try PasscodeKey.stretch(password.bytes, record, of: backupID)
        let header = try HMACKey(Self.derive(.header, from: stretched, backupID))
        let chunks = try Self.derive(.chunks, from: stretched, backupID)
        headerKey = header
        chunkKey = chunks
    }

    private static func derive(
        _ purpose: Purpose, from stretched: borrowing SecretBytes, _ backupID: Identifier128
    ) throws(KeychainFailure) -> SecretBytes {
        try KeyDerivation.derive(from: stretched, salt: backupID.bytes, info: Array(purpose.rawValue.utf8))
    }

    borrowing func headerCode(of message: [UInt8]) -> SHA256.Digest {
        headerKey.authenticationCode { hash in
            // The bytes are read within the closure.
            unsafe message.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) }
        }
    }
}

/// Encrypts a long plaintext in chunks that cannot be reordered, dropped, or cut off: the STREAM construction (Hoang, Reyhanitabar,
/// Rogaway, Vizár: "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", 2015).
///
///     nonce = 3 zeros ‖ chunk number from 0 (8) ‖ 1 in the last chunk, else 0 (1)
///
/// Each backup has its own key, and no chunk number is used twice.
struct BackupChunkCipher: ~Copyable {
    private let key: SecretBytes
    /// Binds each chunk to its header.
    private let headerDigest: [UInt8]

    static let tagByteCount = 16

    init(key: consuming SecretBytes, headerDigest: [UInt8]) {
        self.key = key
        self.headerDigest = headerDigest
    }

    private static func nonce(_ number: UInt64, isLast: Bool) -> [UInt8] {
        var bytes: [UInt8] = [0, 0, 0]
        bytes.append(littleEndian: number)
        bytes.append(isLast ? 1 : 0)
        return bytes
    }

    /// Returns ciphertext and tag.
    borrowing func seal(_ plaintext: [UInt8], number: UInt64, isLast: Bool) throws(KeychainFailure) -> [UInt8] {
        do {
            let box = try AES.GCM.seal(
                plaintext, using: SymmetricKey(key), nonce: AES.GCM.Nonce(data: Self.nonce(number, isLast: isLast)),
                authenticating: headerDigest)
            return Array(box.ciphertext) + Array(box.tag)
        } catch {
            throw KeychainFailure(.internal, "a part of the backup could not be sealed")
        }
    }

    /// Decrypts a chunk.
    ///
    /// Throws `.decode` if it was altered, or sealed with another number.
    borrowing func open(_ sealed: some RandomAccessCollection<UInt8>, number: UInt64, isLast: Bool) throws(KeychainFailure) -> [UInt8] {
        do {
            let box = try AES.GCM.SealedBox(combined: Self.nonce(number, isLast: isLast) + Array(sealed))
            return Array(try AES.GCM.open(box, using: SymmetricKey(key), authenticating: headerDigest))
        } catch {
            throw BackupDamage.failure()
        }
    }
}
