// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// HKDF-SHA256 (RFC 5869) for keys of at most one digest.
///
/// swift-crypto's `HKDF` leaves the key that it derives from, and the one between, in memory that it frees.
enum KeyDerivation {
    static func derive(
        from secret: borrowing SecretBytes, salt: [UInt8], info: [UInt8], byteCount: Int = SHA256.byteCount
    ) throws(KeychainFailure) -> SecretBytes {
        guard byteCount <= SHA256.byteCount else { throw KeychainFailure(.internal, "a derived key is too long") }
        // Here and below: bytes are read or copied within the closure.
        let saltBytes = try unsafe SecretBytes(byteCount: salt.count) { unsafe $0.copyBytes(from: salt) }
        let extracted = try HMACKey(saltBytes).secretCode { hash in
            unsafe secret.withBytes { unsafe hash.update(bufferPointer: $0) }
        }
        let expanded = try HMACKey(extracted).secretCode { hash in
            hash.update(data: info)
            hash.update(data: [1] as [UInt8])
        }
        // Not more than there are, by the check above.
        return try unsafe expanded.withBytes { bytes throws(KeychainFailure) in
            try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]))
        }
    }
}
