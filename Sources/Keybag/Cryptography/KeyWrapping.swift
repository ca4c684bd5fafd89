// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// AES-256 key wrap (RFC 3394): 32 bytes become 40, and the eight additional ones show a wrong or altered key.
///
/// Key wrap has no associated data. Whoever stores a wrapped key authenticates it together with what it belongs to.
enum KeyWrapping {
    static let keyByteCount = 32
    static let wrappedByteCount = 40
    /// What was wrapped twice.
    static let twiceWrappedByteCount = 48

    static func wrap(_ key: SymmetricKey, under wrappingKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        // The wrapping key's schedule, which begins with the key itself, is on the stack there and stays when the call returns.
        defer { SecretArena.wipeStackOfCipher() }
        do {
            return Array(try AES.KeyWrap.wrap(key, using: SymmetricKey(wrappingKey)))
        } catch {
            throw KeychainFailure(.internal, "a key could not be wrapped")
        }
    }

    /// Wraps once more what is wrapped already, and so is no secret.
    static func wrap(wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        try wrap(SymmetricKey(data: wrapped), under: wrappingKey)
    }

    /// What was wrapped twice, wrapped once; nil when it was altered or wrapped under another key.
    static func unwrap(twiceWrapped wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) -> [UInt8]? {
        guard wrapped.count == twiceWrappedByteCount else { return nil }
        defer { SecretArena.wipeStackOfCipher() }
        let once = try? AES.KeyWrap.unwrap(wrapped, using: SymmetricKey(wrappingKey))
        // The bytes are copied within the closure.
        return once.map { key in unsafe key.withUnsafeBytes { unsafe Array($0) } }
    }

    /// The wrapped key; nil when it was altered or wrapped under another key.
    static func unwrap(_ wrapped: [UInt8], under wrappingKey: borrowing SecretBytes) -> SymmetricKey? {
        guard wrapped.count == wrappedByteCount else { return nil }
        defer { SecretArena.wipeStackOfCipher() }
        return try? AES.KeyWrap.unwrap(wrapped, using: SymmetricKey(wrappingKey))
    }
}

/// The way between our memory for keys and swift-crypto's, which wipes its own copy but neither locks it nor keeps it out of dumps.
/// So a `SymmetricKey` is made just before its use and lives no longer.
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
