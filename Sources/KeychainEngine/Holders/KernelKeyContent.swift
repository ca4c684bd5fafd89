// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What one key of the kernel's keyring holds: the secret, and what a holder must know of it.
///
/// format (1) = 1 ‖ timeout in seconds (4; 0: none) ‖ lock epoch (8) ‖ secret; numbers little-endian.
struct KernelKeyContent: ~Copyable {
    static let format: UInt8 = 1
    static let headerByteCount = 13

    let timeoutSeconds: UInt32?
    let lockEpoch: LockEpoch
    let secret: SecretBytes

    enum Reading: ~Copyable {
        case content(KernelKeyContent)
        /// Of a newer version's making: not for us, and not ours to remove.
        case newerFormat
        case malformed
    }

    /// Reads what `encoded` wrote.
    ///
    /// Throws when there is no memory for the secret.
    static func read(_ bytes: UnsafeRawBufferPointer) throws(KeychainFailure) -> Reading {
        guard let format = unsafe bytes.first, format <= Self.format else { return unsafe bytes.isEmpty ? .malformed : .newerFormat }
        guard format == Self.format, bytes.count > headerByteCount else { return .malformed }
        // The count is checked above; loadUnaligned has no alignment rule.
        let timeout = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
        let epoch = unsafe Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 5, as: Int64.self))
        return .content(
            KernelKeyContent(
                timeoutSeconds: timeout == 0 ? nil : timeout, lockEpoch: LockEpoch(rawValue: epoch),
                secret: try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(headerByteCount)))))
    }

    static func encoded(
        _ secret: borrowing SecretBytes, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> SecretBytes {
        var header = [format]
        header.append(littleEndian: timeoutSeconds ?? 0)
        header.append(littleEndian: lockEpoch.rawValue)
        return try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(byteCount: headerByteCount + bytes.count) { buffer in
                // Header and secret fill the buffer exactly.
                unsafe buffer.copyBytes(from: header)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(headerByteCount)).copyMemory(from: bytes)
            }
        }
    }
}
