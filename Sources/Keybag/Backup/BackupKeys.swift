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
