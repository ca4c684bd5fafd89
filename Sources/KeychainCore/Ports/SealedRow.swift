// SPDX-License-Identifier: Apache-2.0

/// The part of a row that is in clear: what the store searches, and what the sealed parts are bound to.
///
/// Nothing here can be read as a name or a value: digests are keyed, the rest is class, flags and random numbers.
package struct RowHeader: Hashable, Sendable {
    package static let currentFormatVersion: UInt8 = 1

    package var formatVersion: UInt8
    package var reference: PersistentReference
    package var accessibility: Accessibility
    package var classKeyGeneration: UInt32
    /// Sixteen random bytes, new at each write: an old part put beside a new header does not open.
    package var revision: Identifier128
    package var isSynchronizable: Bool
    package var isTombstone: Bool
    /// Digests of the two leading attributes of the primary key, and of all its other attributes together.
    package var serviceDigest: IndexDigest
    package var accountDigest: IndexDigest
    package var remainingKeyDigest: IndexDigest
    package var accessGroupDigest: IndexDigest
    /// Digests of every other searchable attribute that the item has, in ascending order of attribute.
    package var attributeDigests: [AttributeDigest]
    /// The canonical constraint tree of an item with access control; nil: the class key alone releases it.
    package var constraints: [UInt8]?

    package init(
        formatVersion: UInt8 = Self.currentFormatVersion, reference: PersistentReference, accessibility: Accessibility,
        classKeyGeneration: UInt32, revision: Identifier128, isSynchronizable: Bool, isTombstone: Bool,
        serviceDigest: IndexDigest, accountDigest: IndexDigest, remainingKeyDigest: IndexDigest,
        accessGroupDigest: IndexDigest, attributeDigests: [AttributeDigest], constraints: [UInt8]? = nil
    ) {
        self.formatVersion = formatVersion
        self.reference = reference
        self.accessibility = accessibility
        self.classKeyGeneration = classKeyGeneration
        self.revision = revision
        self.isSynchronizable = isSynchronizable
        self.isTombstone = isTombstone
        self.serviceDigest = serviceDigest
        self.accountDigest = accountDigest
        self.remainingKeyDigest = remainingKeyDigest
        self.accessGroupDigest = accessGroupDigest
        self.attributeDigests = attributeDigests
        self.constraints = constraints
    }
}

/// The digest of one searchable attribute.
package struct AttributeDigest: Hashable, Sendable {
    package let attribute: Attribute
    package let digest: IndexDigest

    package init(_ attribute: Attribute, _ digest: IndexDigest) {
        self.attribute = attribute
        self.digest = digest
    }
}

/// An item as the store keeps it.
package struct SealedRow: Hashable, Sendable {
    /// The store's own number, ascending in the order of adding; nil before the row is stored.
    package var number: Int64?
    package var header: RowHeader
    /// The item key under the class key (RFC 3394).
    package var wrappedItemKey: [UInt8]
    package var sealedAttributes: [UInt8]
    /// Always there, also for an item without a secret.
    ///
    /// Empty when the read left it out.
    package var sealedSecret: [UInt8]
    /// HMAC over everything above, under a device-bound key: shows damage even while locked.
    package var tag: [UInt8]

    package init(
        number: Int64? = nil, header: RowHeader, wrappedItemKey: [UInt8], sealedAttributes: [UInt8], sealedSecret: [UInt8],
        tag: [UInt8]
    ) {
        self.number = number
        self.header = header
        self.wrappedItemKey = wrappedItemKey
        self.sealedAttributes = sealedAttributes
        self.sealedSecret = sealedSecret
        self.tag = tag
    }
}
