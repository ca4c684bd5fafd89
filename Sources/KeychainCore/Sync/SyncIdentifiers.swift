// SPDX-License-Identifier: Apache-2.0

/// Sixteen bytes that identify something in a circle of devices, as a type of its own.
package protocol SyncIdentifier: Hashable, Comparable, Sendable {
    var value: Identifier128 { get }
    init(_ value: Identifier128)
}

extension SyncIdentifier {
    package init?(_ bytes: some Collection<UInt8>) {
        guard let value = Identifier128(bytes) else { return nil }
        self.init(value)
    }

    package var bytes: [UInt8] { value.bytes }
    package var hexadecimal: String { value.hexadecimal }

    /// Orders identifiers by their bytes.
    package static func < (left: Self, right: Self) -> Bool { left.value.isOrdered(before: right.value) }
}

extension Identifier128 {
    /// Returns whether the bytes of this identifier are lexicographically less than those of `other`.
    package func isOrdered(before other: Identifier128) -> Bool { (high, low) < (other.high, other.low) }
}

/// Identifies a circle: the first 16 bytes of the hash of its founding statement.
package struct CircleID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// Identifies a device: the first 16 bytes of a hash of its public keys and its role.
///
/// Two devices with one identifier have the same keys, and no role ever changes.
package struct DeviceID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// Identifies a log.
///
/// Random.
package struct LogID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// Identifies a version: the revision of the row that it was written as.
package struct SyncVersionID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// Identifies a lane key: the first 16 bytes of a hash of the key, so that a key can be checked when it is received.
package struct LaneKeyID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// Identifies an invitation.
///
/// Derived from its code, and not secret.
package struct InvitationID: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// A keyed digest of an item's primary key, under a key of this store only.
///
/// Two versions with the same name are versions of the same item.
package struct ItemName: SyncIdentifier {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
}

/// A SHA-256 hash of an object in the storage.
package struct ObjectHash: Hashable, Comparable, Sendable {
    /// The first 16 bytes, which identify a batch among those with the same log and number.
    package let prefix: Identifier128
    package let suffix: Identifier128

    package static let byteCount = 32
    /// The predecessor of the first batch of a log.
    package static let none = ObjectHash(prefix: Identifier128(high: 0, low: 0), suffix: Identifier128(high: 0, low: 0))

    package init(prefix: Identifier128, suffix: Identifier128) {
        self.prefix = prefix
        self.suffix = suffix
    }

    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount, let prefix = Identifier128(bytes.prefix(16)), let suffix = Identifier128(bytes.suffix(16))
        else { return nil }
        self.init(prefix: prefix, suffix: suffix)
    }

    /// Parses the ASCII characters of 64 hexadecimal digits.
    package init?(hexadecimalDigits digits: ArraySlice<UInt8>) {
        guard digits.count == 4 * Identifier128.byteCount, let prefix = Identifier128(hexadecimalDigits: digits.prefix(32)),
            let suffix = Identifier128(hexadecimalDigits: digits.suffix(32))
        else { return nil }
        self.init(prefix: prefix, suffix: suffix)
    }

    package var bytes: [UInt8] { prefix.bytes + suffix.bytes }
    package var hexadecimal: String { prefix.hexadecimal + suffix.hexadecimal }

    package static func < (left: ObjectHash, right: ObjectHash) -> Bool {
        left.prefix == right.prefix ? left.suffix.isOrdered(before: right.suffix) : left.prefix.isOrdered(before: right.prefix)
    }
}

package typealias BatchHash = ObjectHash
package typealias StatementHash = ObjectHash
package typealias CheckpointHash = ObjectHash
