// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What a holder is given of a device secret.
///
///     format (1) = 1 ‖ store id (16) ‖ device secret (32)
///
/// Whether it is the right one the keybag tells, which it authenticates.
enum HeldDeviceSecret {
    private static let format: UInt8 = 1
    private static let headByteCount = 1 + StoreID.byteCount

    private static func head(of storeID: StoreID) -> [UInt8] { [format] + storeID.bytes }

    static func payload(_ secret: borrowing SecretBytes, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        // Head and secret fill the region exactly, and are copied within the closures.
        try unsafe SecretBytes(byteCount: headByteCount + secret.byteCount) { buffer in
            unsafe buffer.copyBytes(from: head(of: storeID))
            unsafe secret.withBytes { unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[headByteCount...]).copyMemory(from: $0) }
        }
    }

    static func isOne(_ payload: borrowing SecretBytes, of storeID: StoreID) -> Bool {
        guard payload.byteCount == headByteCount + DeviceSecret.byteCount else { return false }
        // The bytes that are read are none of the secret.
        return unsafe payload.withBytes { unsafe $0.prefix(headByteCount).elementsEqual(head(of: storeID)) }
    }

    /// The secret of a payload that `isOne`.
    static func secret(in payload: borrowing SecretBytes, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard isOne(payload, of: storeID) else { throw KeychainFailure(.internal, "a holder's payload is no device secret") }
        return try unsafe payload.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[headByteCount...]))
        }
    }
}
