// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

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
