// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// The two keys of a backup.
///
/// They come from its password alone, so that it opens on any device: no device secret is in them.
struct BackupKeys: ~Copyable {
    /// Authenticates the header.
    private let headerKey: HMACKey
    /// Seals the chunks.
    private let chunkKey: SecretBytes

    /// For one cipher, which keeps it as long as it lives.
    borrowing func copiedChunkKey() throws(KeychainFailure) -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe chunkKey.withBytes { bytes throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }

    /// The `info` strings, part of the format.
    private enum Purpose: String {
        case header = "keychain backup header mac v1"
        case chunks = "keychain backup chunks v1"
    }

    /// Takes as long as the cost of the password says.
    static func derive(
        from password: borrowing Passcode, _ record: PasscodeRecord, backupID: Identifier128
    ) throws(KeychainFailure) -> BackupKeys {
        // Whoever found the stretched password on the stack would need no guess.
        defer { SecretArena.wipeStack() }
        return try BackupKeys(password, record, backupID)
    }

    // Not inlined: what it leaves lies below the frame of its caller, where the wipe reaches it.
    @inline(never)
    private init(_ password: borrowing Passcode, _ record: PasscodeRecord, _ backupID: Identifier128) throws(KeychainFailure) {
        let stretched = try PasscodeKey.stretch(password.bytes, record)
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

/// A long plaintext in chunks that are each sealed by themselves, yet only open as a whole and in order: the STREAM construction
/// (Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", 2015).
///
///     nonce = 3 zeros ‖ chunk number from 0 (8) ‖ 1 in the last chunk, else 0 (1)
///
/// The key is this backup's alone, and no number comes twice.
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

    /// Ciphertext and tag.
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

    /// Throws `.decode` for a chunk that is not the one of this number, or was altered.
    borrowing func open(_ sealed: some RandomAccessCollection<UInt8>, number: UInt64, isLast: Bool) throws(KeychainFailure) -> [UInt8] {
        do {
            let box = try AES.GCM.SealedBox(combined: Self.nonce(number, isLast: isLast) + Array(sealed))
            return Array(try AES.GCM.open(box, using: SymmetricKey(key), authenticating: headerDigest))
        } catch {
            throw BackupDamage.failure()
        }
    }
}
