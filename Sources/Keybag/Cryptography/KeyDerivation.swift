// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// HKDF-SHA256 (RFC 5869) for keys of at most one digest.
///
/// swift-crypto's `HKDF` leaves the input key and the extracted key in memory that it frees.
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
        // `byteCount` is at most the size of a digest, as checked above.
        return try unsafe expanded.withBytes { bytes throws(KeychainFailure) in
            try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]))
        }
    }
}

/// The purpose of a derived key.
///
/// Derivation is HKDF-SHA256 (RFC 5869), salted with the store's identifier, so that no two stores share a derived key.
///
/// The raw values are the `info` strings, part of the on-disk format. A new purpose or a changed rule requires a new string.
enum KeyPurpose: String {
    /// Wraps the keybag's device-bound keys.
    case deviceKey = "keychain device key v1"
    /// Wraps the class keys that a lock removes. Derived from the stretched passcode and the device secret.
    case passcodeKey = "keychain passcode key v1"
    /// Authorizes the TPM to unseal its part of the passcode key. Derived from the stretched passcode alone, and used nowhere else.
    case tpmAuthorization = "keychain tpm-auth v1"
    /// The private key of a recovery key's key pair.
    case recoveryKey = "keychain recovery key v1"
    /// Authenticates a recovery record. Derived from the recovery key.
    case recoveryAuthentication = "keychain recovery mac v1"
    /// One-way values of the keys that a store never replaces, in the authentication code of a recovery record.
    case indexKeyCheck = "keychain index key check v1"
    case rowTagKeyCheck = "keychain row-tag key check v1"
    /// Authenticates the keybag itself.
    case keybagAuthentication = "keychain keybag mac v1"
    /// Seals class keys for a key holder. Derived from the device secret.
    case heldClassKeys = "keychain held class keys v1"
    /// Seals the device secret for a key holder. Derived from the form that the TPM sealed, which is in the keybag.
    case heldDeviceSecret = "keychain held device secret v1"
    /// Seals the state of the store. Derived from the row-tag key.
    case storeState = "keychain store state v1"
    /// Verifies a class key without the keybag's wrapping keys.
    case classKeyCheck = "keychain class key check v1"
    /// Combines several keys that are all required into one.
    case constraintConjunction = "keychain constraint all v1"
    /// Releases an item that an application password protects.
    case applicationPassword = "keychain application password v1"
    /// Wraps the biometric keys. Derived from a secret that only keychaind has.
    case biometricKeys = "keychain biometric keys v1"
    /// Names the biometric keys of a secret, without revealing it.
    case biometricKeysName = "keychain biometric keys name v1"
    /// Tells programs that the set of fingers has changed, and nothing else about it.
    case biometryState = "keychain biometry state v1"
    /// Verifies an application password.
    case applicationPasswordCheck = "keychain application password check v1"

    /// The key for this purpose.
    func derive(from secret: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        try KeyDerivation.derive(from: secret, salt: storeID.bytes, info: Array(rawValue.utf8))
    }

    /// The key for this purpose and a context, such as one item.
    func derive(from secret: borrowing SecretBytes, storeID: StoreID, context: [UInt8]) throws(KeychainFailure) -> SecretBytes {
        try KeyDerivation.derive(from: secret, salt: storeID.bytes, info: Array(rawValue.utf8) + context)
    }

    /// The key as bytes, for values that are stored in plaintext.
    func deriveBytes(
        from secret: borrowing SecretBytes, storeID: StoreID, context: [UInt8], byteCount: Int
    ) throws(KeychainFailure) -> [UInt8] {
        let key = try KeyDerivation.derive(
            from: secret, salt: storeID.bytes, info: Array(rawValue.utf8) + context, byteCount: byteCount)
        // The bytes are copied within the closure.
        return unsafe key.withBytes { unsafe Array($0) }
    }
}
