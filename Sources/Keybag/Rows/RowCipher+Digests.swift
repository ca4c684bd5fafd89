// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// Digests of searchable values: HMAC-SHA256 under the index key, truncated to 16 bytes. 128 bits rule out accidental collisions and
/// keep rows small.
///
///     version (1) ‖ purpose (1) ‖ class code (1) ‖ number of values (1) ‖ each value
///     value = attribute number (1) ‖ form (1) ‖ byte count (6) ‖ compared bytes
///
/// The form is 1 for a number in an attribute that is compared as a number. Otherwise it is 0, because text and data with the same
/// bytes are the same value.
extension RowCipher {
    private static let digestVersion: UInt8 = 1

    private enum Purpose: UInt8 {
        case oneValue = 1
        case severalValues = 2
    }

    package func digest(
        of value: AttributeValue, for attribute: Attribute, in itemClass: ItemClass
    ) throws(KeychainFailure) -> IndexDigest {
        digest(.oneValue, itemClass, valueCount: 1) { Self.feed(value, for: attribute, into: &$0) }
    }

    package func digest(
        of values: [(Attribute, AttributeValue)], in itemClass: ItemClass
    ) throws(KeychainFailure) -> IndexDigest {
        guard let count = UInt8(exactly: values.count) else { throw KeychainFailure(.parameter, "too many values for one digest") }
        return digest(.severalValues, itemClass, valueCount: count) { hash in
            for (attribute, value) in values { Self.feed(value, for: attribute, into: &hash) }
        }
    }

    private func digest(
        _ purpose: Purpose, _ itemClass: ItemClass, valueCount: UInt8, _ feedValues: (inout SHA256) -> Void
    ) -> IndexDigest {
        let code = indexKey.authenticationCode { hash in
            hash.update(
                littleEndian: UInt32(Self.digestVersion) | UInt32(purpose.rawValue) << 8 | UInt32(itemClass.code) << 16
                    | UInt32(valueCount) << 24
            )
            feedValues(&hash)
        }
        // The code has 32 bytes and is read within the closure. Its first 16 bytes are the digest.
        return unsafe code.withUnsafeBytes { bytes in
            unsafe IndexDigest(
                high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }

    private static func feed(_ value: AttributeValue, for attribute: Attribute, into hash: inout SHA256) {
        var form: UInt64 = 0
        if attribute.kind == .number, case .number = value { form = 1 }
        // The bytes are read within the closure.
        unsafe value.withComparedBytes { bytes in
            hash.update(littleEndian: UInt64(attribute.rawValue) | form << 8 | UInt64(bytes.count) << 16)
            unsafe hash.update(bufferPointer: bytes)
        }
    }
}
