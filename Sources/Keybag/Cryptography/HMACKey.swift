// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// A key for HMAC-SHA256 (RFC 2104), with both padded blocks precomputed.
///
/// swift-crypto's `HMAC` pads the key at each use, in arrays that it frees without wiping, and takes four times as long. Every
/// search needs several digests, so this type keeps the two blocks in secret memory and uses swift-crypto's SHA-256 alone.
struct HMACKey: ~Copyable, Sendable {
    private let innerBlock: SecretBytes
    private let outerBlock: SecretBytes

    /// Creates a key of at most one block.
    ///
    /// All keys here have 32 bytes.
    init(_ key: borrowing SecretBytes) throws(KeychainFailure) {
        guard key.byteCount <= SHA256.blockByteCount else { throw KeychainFailure(.internal, "a key is too long for its use") }
        let inner = try Self.block(key, padding: 0x36)
        let outer = try Self.block(key, padding: 0x5C)
        innerBlock = inner
        outerBlock = outer
    }

    private static func block(_ key: borrowing SecretBytes, padding: UInt8) throws(KeychainFailure) -> SecretBytes {
        // The key is no longer than the block, by the check in `init`.
        try unsafe SecretBytes(byteCount: SHA256.blockByteCount) { block in
            unsafe key.withBytes { unsafe block.copyMemory(from: $0) }
            for index in block.indices { unsafe block[index] ^= padding }
        }
    }

    /// Returns the code of the bytes that `message` feeds to the hash.
    borrowing func authenticationCode(of message: (inout SHA256) -> Void) -> SHA256.Digest {
        var inner = SHA256()
        // Here and below: the hash reads the bytes within the closure.
        unsafe innerBlock.withBytes { unsafe inner.update(bufferPointer: $0) }
        message(&inner)
        let innerDigest = inner.finalize()
        var outer = SHA256()
        unsafe outerBlock.withBytes { unsafe outer.update(bufferPointer: $0) }
        unsafe innerDigest.withUnsafeBytes { unsafe outer.update(bufferPointer: $0) }
        return outer.finalize()
    }

    /// Returns the code in secret memory; leaves no copy of the message, the code, or intermediate values in freed memory.
    borrowing func secretCode(of message: (inout SHA256) -> Void) throws(KeychainFailure) -> SecretBytes {
        var inner = SHA256()
        // Here and below: the hash reads the bytes within the closure.
        unsafe innerBlock.withBytes { unsafe inner.update(bufferPointer: $0) }
        message(&inner)
        let innerDigest = inner.finalizeWiping()
        var outer = SHA256()
        unsafe outerBlock.withBytes { unsafe outer.update(bufferPointer: $0) }
        unsafe innerDigest.withUnsafeBytes { unsafe outer.update(bufferPointer: $0) }
        let code = outer.finalizeWiping()
        // The region has the size of a digest.
        return try unsafe SecretBytes(byteCount: SHA256.byteCount) { buffer in
            unsafe code.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
        }
    }
}

extension SHA256 {
    /// Feeds a number's little-endian bytes.
    mutating func update<Number: FixedWidthInteger>(littleEndian number: Number) {
        // The bytes of a local copy, read within the closure.
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe update(bufferPointer: $0) }
    }

    /// Feeds a 32-bit byte count and the bytes.
    mutating func update(lengthPrefixed bytes: [UInt8]) {
        update(littleEndian: UInt32(bytes.count))
        // The bytes are read within the closure.
        unsafe bytes.withUnsafeBytes { unsafe update(bufferPointer: $0) }
    }
}

extension SHA256 {
    /// Returns the digest, and overwrites the hash's buffer.
    ///
    /// A hash buffers input until a block is full, and swift-crypto frees that buffer without wiping it. Feeding one more block of zeros
    /// afterwards overwrites the secret's bytes.
    mutating func finalizeWiping() -> Digest {
        let digest = finalize()
        update(data: Self.zeroBlock)
        return digest
    }

    private static let zeroBlock = [UInt8](repeating: 0, count: blockByteCount)
}
