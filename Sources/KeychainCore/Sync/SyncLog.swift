// SPDX-License-Identifier: Apache-2.0

/// How far a log is known: its newest known batch, with the signature by which any device can check that it exists.
///
/// The signature covers a label, the circle, the log, the number, the previous hash, and the hash.
package struct LogMark: Hashable, Sendable {
    package let log: LogID
    package let device: DeviceID
    package let number: UInt64
    package let previous: BatchHash
    package let hash: BatchHash
    /// An Ed25519 signature, 64 bytes.
    package let signature: [UInt8]

    package static let signatureByteCount = 64

    package init(log: LogID, device: DeviceID, number: UInt64, previous: BatchHash, hash: BatchHash, signature: [UInt8]) {
        self.log = log
        self.device = device
        self.number = number
        self.previous = previous
        self.hash = hash
        self.signature = signature
    }

    package var origin: Origin { Origin(log: log, number: number, hash: hash.prefix) }
}

/// A batch that was read, or that an absorbed checkpoint covers.
package struct ReadBatch: Hashable, Comparable, Sendable {
    package let log: LogID
    package let device: DeviceID
    package let number: UInt64
    package let hash: BatchHash
    /// The number of versions in it; 0 if only a checkpoint tells of it.
    package let versionCount: Int

    package init(log: LogID, device: DeviceID, number: UInt64, hash: BatchHash, versionCount: Int) {
        self.log = log
        self.device = device
        self.number = number
        self.hash = hash
        self.versionCount = versionCount
    }

    package var origin: Origin { Origin(log: log, number: number, hash: hash.prefix) }

    package static func < (left: ReadBatch, right: ReadBatch) -> Bool { left.origin < right.origin }
}

/// An object that this device has sealed and still has to create in the storage.
package struct OutgoingObject: Hashable, Sendable {
    /// The name below the circle's folder.
    package let name: String
    package let bytes: [UInt8]

    package init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }
}

/// A statement about the devices of a circle, as signed.
package struct StoredStatement: Hashable, Sendable {
    package let hash: StatementHash
    package let bytes: [UInt8]

    package init(hash: StatementHash, bytes: [UInt8]) {
        self.hash = hash
        self.bytes = bytes
    }
}

/// A record that a program's write has made of the item that it changed.
package struct RecordedChange: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        case written = 1
        case deleted = 2
        /// Deleted, and then written again under the same identifier, which an added item takes over from a tombstone or a damaged row.
        case rewritten = 3

        /// Returns the kind of two changes of one item.
        package static func combined(_ earlier: Kind?, _ later: Kind) -> Kind {
            later == .written && earlier != nil && earlier != .written ? .rewritten : later
        }
    }

    package let item: ItemID
    package let kind: Kind

    package init(item: ItemID, kind: Kind) {
        self.item = item
        self.kind = kind
    }
}
