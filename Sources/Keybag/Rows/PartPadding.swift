// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The padding of a sealed part.
///
/// It hides the exact size of the content, and whether there is any.
///
///     content ‖ zeros ‖ presence (1: 0 or 1) ‖ content's byte count (8, little-endian)
///
/// The count is at the end, so that the content starts at the beginning of the decrypted buffer and needs no copy.
enum PartPadding {
    private static let trailerByteCount = 9

    /// The size of the plaintext for `contentByteCount` bytes of content.
    ///
    /// Up to 4 KiB a multiple of 64 bytes. Above, the PADMÉ rule (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and
    /// Communication with PURBs", 2019), which rounds up the lower digits of the size and adds at most 6.25 %.
    static func paddedByteCount(contentByteCount: Int) -> Int {
        let needed = contentByteCount + trailerByteCount
        guard needed > 4096 else { return (needed + 63) & ~63 }
        let exponent = Int.bitWidth - 1 - needed.leadingZeroBitCount
        let exponentDigits = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = (1 << (exponent - exponentDigits)) - 1
        return (needed + mask) & ~mask
    }

    /// Returns the plaintext of a content, which is empty if `isPresent` is false.
    ///
    /// Present content may be empty too.
    static func padded(_ content: Span<UInt8>, isPresent: Bool) -> [UInt8] {
        let paddedByteCount = paddedByteCount(contentByteCount: content.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(paddedByteCount)
        // The bytes are copied within the closure.
        unsafe content.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: repeatElement(0, count: paddedByteCount - content.count - trailerByteCount))
        bytes.append(isPresent ? 1 : 0)
        bytes.append(littleEndian: UInt64(content.count))
        return bytes
    }

    enum Content {
        case absent
        /// The content is the first `byteCount` bytes of the plaintext.
        case present(byteCount: Int)
    }

    /// Returns the content of a plaintext; nil unless it is exactly what `padded` produces.
    static func content(of plaintext: Span<UInt8>) -> Content? {
        let trailer = plaintext.count - trailerByteCount
        guard trailer >= 0 else { return nil }
        var count: UInt64 = 0
        for index in 0..<8 { count |= UInt64(plaintext[trailer + 1 + index]) << UInt64(8 * index) }
        guard count <= UInt64(trailer), paddedByteCount(contentByteCount: Int(count)) == plaintext.count else { return nil }
        for index in Int(count)..<trailer where plaintext[index] != 0 { return nil }
        switch plaintext[trailer] {
        case 1: return .present(byteCount: Int(count))
        case 0 where count == 0: return .absent
        default: return nil
        }
    }
}
