// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// AES-256 key wrap (RFC 3394): 32 bytes become 40, of which eight detect a wrong wrapping key and alterations.
///
/// Key wrap has no associated data, so a wrapped key must be authenticated together with the data that it belongs to.
enum KeyWrapping {
    static let keyByteCount = 32
    static let wrappedByteCount = 40
    /// The size of a key that was wrapped twice.
    static let twiceWrappedByteCount = 48

    static func wrap(_ key: SymmetricKey, under wrappingKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        // AES leaves its key schedule, which begins with the key itself, on the stack.
        defer { SecretArena.wipeStackOfCipher() }
        do {
            return Array(try AES.KeyWrap.wrap(key, using: SymmetricKey(wrappingKey)))
        } catch {
            throw KeychainFailure(.internal, "a key could not be wrapped")
        }
    }

    /// Wraps a wrapped key, which is not secret, once more.
    static func wrap(wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        try wrap(SymmetricKey(data: wrapped), under: wrappingKey)
    }

    /// Removes the outer wrapping of a key that was wrapped twice; nil if it was altered or wrapped under another key.
    static func unwrap(twiceWrapped wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) -> [UInt8]? {
        guard wrapped.count == twiceWrappedByteCount else { return nil }
        defer { SecretArena.wipeStackOfCipher() }
        let once = try? AES.KeyWrap.unwrap(wrapped, using: SymmetricKey(wrappingKey))
        // The bytes are copied within the closure.
        return once.map { key in unsafe key.withUnsafeBytes { unsafe Array($0) } }
    }

    /// Unwraps a key; nil if it was altered or wrapped under another key.
    static func unwrap(_ wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) -> SymmetricKey? {
        guard wrapped.count == wrappedByteCount else { return nil }
        defer { SecretArena.wipeStackOfCipher() }
        return try? AES.KeyWrap.unwrap(wrapped, using: SymmetricKey(wrappingKey))
    }
}

/// Conversions between secret memory and swift-crypto's keys. swift-crypto wipes its copies but neither locks them in memory nor
/// excludes them from core dumps, so a `SymmetricKey` exists only for the duration of one use.
extension SymmetricKey {
    init(_ secret: borrowing SecretBytes) {
        // The bytes are copied within the closure.
        self = unsafe secret.withBytes { unsafe SymmetricKey(data: $0) }
    }
}

extension SecretBytes {
    init(copying key: SymmetricKey) throws(KeychainFailure) {
        // Both buffers are used within the closures only, and are of one size.
        try unsafe self.init(byteCount: key.bitCount / 8) { destination in
            unsafe key.withUnsafeBytes { unsafe destination.copyMemory(from: $0) }
        }
    }
}
