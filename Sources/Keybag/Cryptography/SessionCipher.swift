// SPDX-License-Identifier: Apache-2.0
#if SecretService
internal import Crypto
internal import CryptoExtras
package import FoundationEssentials

/// The encryption of secrets between a program and the Secret Service: AES-128 in CBC mode, with PKCS#7 padding.
///
/// It has no authentication and keeps secrets from the memory of the message bus only; the interface allows no other one.
///
/// Source: Secret Service API Draft, version 0.2, "Transfer of Secrets".
package struct SessionCipher: Sendable {
    private static let keyByteCount = 16
    private static let blockByteCount = 16

    private let key: SymmetricKey

    /// Derives the key from the result of a key agreement, with HKDF-SHA256 without salt.
    package init(sharedSecret: some ContiguousBytes) {
        key = HKDF<SHA256>.deriveKey(inputKeyMaterial: SymmetricKey(data: sharedSecret), outputByteCount: Self.keyByteCount)
    }

    /// Encrypts a secret under a random initialization vector, which is the parameter of the encryption; nil if that fails.
    package func encrypt(_ secret: Data) -> (parameters: Data, value: Data)? {
        let vector = AES._CBC.IV()
        guard let value = try? AES._CBC.encrypt(secret, using: key, iv: vector) else { return nil }
        return (Data(vector), value)
    }

    /// Decrypts a value; nil if it was not encrypted in this way.
    package func decrypt(_ value: Data, parameters: Data) -> Data? {
        guard parameters.count == Self.blockByteCount, !value.isEmpty, value.count.isMultiple(of: Self.blockByteCount),
            let vector = try? AES._CBC.IV(ivBytes: parameters)
        else { return nil }
        return try? AES._CBC.decrypt(value, using: key, iv: vector)
    }
}
#endif
