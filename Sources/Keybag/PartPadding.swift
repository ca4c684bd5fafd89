// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore

/// The plaintext of a sealed part: hides how long its content is, and whether there is any.
///
///     content ‖ zeros ‖ presence (1: 0 or 1) ‖ content's byte count (8, little-endian)
///
/// The count stands last so that the content begins the buffer it was decrypted into, and is handed on without a copy.
enum PartPadding {
    private static let trailerByteCount = 9

    /// How long the plaintext of a content of `contentByteCount` bytes is.
    ///
    /// Up to 4 KiB a multiple of 64. Above, the PADMÉ rule (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files
    /// and Communication with PURBs", 2019): the more digits a length has, the fewer of them show, and at most 6.25 % is added.
    static func paddedByteCount(contentByteCount: Int) -> Int {
        let needed = contentByteCount + trailerByteCount
        guard needed > 4096 else { return (needed + 63) & ~63 }
        let exponent = Int.bitWidth - 1 - needed.leadingZeroBitCount
        let exponentDigits = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = (1 << (exponent - exponentDigits)) - 1
        return (needed + mask) & ~mask
    }

    /// The plaintext of a content; nil stands for "there is none", which is not the same as an empty one.
    static func padded(_ content: (some DataProtocol)?) -> [UInt8] {
        let contentByteCount = content?.count ?? 0
        let paddedByteCount = paddedByteCount(contentByteCount: contentByteCount)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(paddedByteCount)
        if let content { bytes.append(contentsOf: content) }
        bytes.append(contentsOf: repeatElement(0, count: paddedByteCount - contentByteCount - trailerByteCount))
        bytes.append(content == nil ? 0 : 1)
        bytes.append(littleEndian: UInt64(contentByteCount))
        return bytes
    }

    enum Content {
        case absent
        case present(Data)
    }

    /// The content of a plaintext; nil for every other bytes than those that `padded` makes.
    static func content(of plaintext: Data) -> Content? {
        guard plaintext.count >= trailerByteCount else { return nil }
        // The buffer is read within the closure, at offsets below its count.
        let parsed: (count: Int, isPresent: Bool)? = unsafe plaintext.withUnsafeBytes { bytes in
            let trailer = bytes.count - trailerByteCount
            let count = unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: trailer + 1, as: UInt64.self))
            guard count <= UInt64(trailer), unsafe bytes[trailer] <= 1,
                paddedByteCount(contentByteCount: Int(count)) == bytes.count,
                unsafe bytes[Int(count)..<trailer].allSatisfy({ $0 == 0 })
            else { return nil }
            return unsafe (Int(count), bytes[trailer] == 1)
        }
        guard let parsed, parsed.isPresent || parsed.count == 0 else { return nil }
        return parsed.isPresent ? .present(plaintext.prefix(parsed.count)) : .absent
    }
}
