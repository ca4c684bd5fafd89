// SPDX-License-Identifier: Apache-2.0

/// The batch that published a version.
package struct Origin: Hashable, Comparable, Sendable {
    package let log: LogID
    /// The number of the batch in its log, from 1.
    package let number: UInt64
    /// The first 16 bytes of the batch's hash: a cloned device may publish two batches with one number.
    package let hash: Identifier128

    package init(log: LogID, number: UInt64, hash: Identifier128) {
        self.log = log
        self.number = number
        self.hash = hash
    }

    package static func < (left: Origin, right: Origin) -> Bool {
        if left.log != right.log { return left.log < right.log }
        if left.number != right.number { return left.number < right.number }
        return left.hash.isOrdered(before: right.hash)
    }
}

/// Names a version by its identifier and its origin.
///
/// The identifier alone is not a name: a clone of a device with unsent changes publishes the same revision in another batch.
package struct VersionReference: Hashable, Comparable, Sendable {
    package let id: SyncVersionID
    /// Nil while the version is not part of a batch yet.
    package let origin: Origin?

    package init(id: SyncVersionID, origin: Origin?) {
        self.id = id
        self.origin = origin
    }

    /// Orders references by identifier, then by origin, unpublished first.
    package static func < (left: VersionReference, right: VersionReference) -> Bool {
        if left.id != right.id { return left.id < right.id }
        guard let rightOrigin = right.origin else { return false }
        guard let leftOrigin = left.origin else { return true }
        return leftOrigin < rightOrigin
    }
}

/// A version that no version known here replaces.
package struct LiveVersion: Hashable, Sendable {
    package var reference: VersionReference
    package let name: ItemName
    package let lane: Lane
    /// The modification date in seconds since 2001-01-01 00:00:00 UTC; nil for a local write that was recorded while its class was locked.
    package var date: Double?
    /// A digest of the content without dates and `sha1`, under a key of this store; nil in the case above.
    package var contentDigest: Identifier128?
    /// The item in `items` that shows this version; nil for a conflict copy.
    package var item: ItemID?

    package init(
        reference: VersionReference, name: ItemName, lane: Lane, date: Double?, contentDigest: Identifier128?, item: ItemID?
    ) {
        self.reference = reference
        self.name = name
        self.lane = lane
        self.date = date
        self.contentDigest = contentDigest
        self.item = item
    }
}

/// A local write that is not part of a batch yet.
package struct PendingVersion: Hashable, Sendable {
    package let id: SyncVersionID
    package let name: ItemName
    /// Deletions are in `afterFirstUnlock`, because removing a row needs no key.
    package let lane: Lane
    package let isDeletion: Bool
    /// The published versions that this one replaces.
    package var replaced: [VersionReference]

    package init(id: SyncVersionID, name: ItemName, lane: Lane, isDeletion: Bool, replaced: [VersionReference]) {
        self.id = id
        self.name = name
        self.lane = lane
        self.isDeletion = isDeletion
        self.replaced = replaced
    }
}

/// The content of an item on its way between devices.
package struct SyncContent: Hashable, Sendable {
    package let itemClass: ItemClass
    package let accessibility: ItemAccessibility
    /// The canonical encoding of the attributes (`ItemAttributes.encoded`), without `sha1`.
    package let attributes: [UInt8]
    package let secret: [UInt8]?

    package init(itemClass: ItemClass, accessibility: ItemAccessibility, attributes: [UInt8], secret: [UInt8]?) {
        self.itemClass = itemClass
        self.accessibility = accessibility
        self.attributes = attributes
        self.secret = secret
    }
}

/// What the merge needs to know of a content.
package struct ContentSummary: Hashable, Sendable {
    package let name: ItemName
    package let lane: Lane
    /// The modification date, which is finite.
    package let date: Double
    /// A digest of the content without dates and `sha1`, under a key of this store.
    package let contentDigest: Identifier128

    package init(name: ItemName, lane: Lane, date: Double, contentDigest: Identifier128) {
        self.name = name
        self.lane = lane
        self.date = date
        self.contentDigest = contentDigest
    }
}
