// SPDX-License-Identifier: Apache-2.0

/// The plaintext part of a row: the columns that the store searches, to which the sealed parts are bound.
///
/// It reveals no name or value: digests are keyed, and the rest is class, flags, and random numbers.
package struct RowHeader: Hashable, Sendable {
    /// The format of every row.
    ///
    /// Another one requires another format of the file, which older versions of this library refuse as a whole. So a row with another
    /// number was altered.
    package static let formatVersion: UInt8 = 1

    package var formatVersion: UInt8
    package var reference: PersistentReference
    package var accessibility: ItemAccessibility
    package var classKeyGeneration: UInt32
    /// Sixteen random bytes, new with each change of the item.
    ///
    /// They prevent combining an old part with a new header, and name the version of a synchronizable item. A row that is only resealed
    /// under another class key keeps them; its wrapped item key, to which the parts are bound, is new.
    package var revision: Identifier128
    package var isSynchronizable: Bool
    package var isTombstone: Bool
    /// Digests of the two leading attributes of the primary key, and one of all its other attributes.
    package var serviceDigest: IndexDigest
    package var accountDigest: IndexDigest
    package var remainingKeyDigest: IndexDigest
    package var accessGroupDigest: IndexDigest
    /// Digests of the item's other searchable attributes, in ascending order of attribute.
    package var attributeDigests: [AttributeDigest]
    /// The encoded constraint tree of an item with access control; nil: the class key alone opens the item.
    package var constraints: [UInt8]?

    package init(
        formatVersion: UInt8 = Self.formatVersion, reference: PersistentReference, accessibility: ItemAccessibility,
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

/// An item as stored.
package struct SealedRow: Hashable, Sendable {
    /// The store's row number, ascending in insertion order; nil before the row is stored.
    package var number: Int64?
    package var header: RowHeader
    /// The item key wrapped under the class key (RFC 3394).
    package var wrappedItemKey: [UInt8]
    package var sealedAttributes: [UInt8]
    /// Present even for an item without a secret.
    ///
    /// Empty if the read omitted it.
    package var sealedSecret: [UInt8]
    /// HMAC over everything above, under a device-bound key.
    ///
    /// It detects damage even while locked.
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

/// The encoding of a header, to which the sealed parts and the row tag are bound. Part of the on-disk format.
extension RowHeader {
    /// The fields of fixed size; then the digests with their byte count; then the constraints, preceded by a flag.
    package func encoded(storeID: StoreID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encodedByteCount)
        appendEncoded(to: &bytes, storeID: storeID)
        return bytes
    }

    /// The size of `encoded`.
    package var encodedByteCount: Int {
        125 + attributeDigests.count * Self.packedDigestByteCount + (constraints.map { $0.count + 4 } ?? 0)
    }

    /// Appends the encoding to other bytes, as every read and write needs it.
    package func appendEncoded(to bytes: inout [UInt8], storeID: StoreID) {
        bytes.append(formatVersion)
        bytes.append(storeID)
        bytes.append(reference.itemClass.code)
        bytes.append(reference.id)
        bytes.append(accessibility.code)
        bytes.append(littleEndian: classKeyGeneration)
        bytes.append(revision)
        bytes.append((isSynchronizable ? 1 : 0) | (isTombstone ? 2 : 0))
        bytes.append(serviceDigest)
        bytes.append(accountDigest)
        bytes.append(remainingKeyDigest)
        bytes.append(accessGroupDigest)
        bytes.append(littleEndian: UInt32(attributeDigests.count * Self.packedDigestByteCount))
        Self.appendPacked(attributeDigests, to: &bytes)
        if let constraints {
            bytes.append(1)
            bytes.append(lengthPrefixed: constraints)
        } else {
            bytes.append(0)
        }
    }

    private static let packedDigestByteCount = 1 + IndexDigest.byteCount

    /// Returns the digests in the form of one column: attribute number and sixteen bytes each, in ascending order.
    package static func packed(_ digests: [AttributeDigest]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digests.count * packedDigestByteCount)
        appendPacked(digests, to: &bytes)
        return bytes
    }

    private static func appendPacked(_ digests: [AttributeDigest], to bytes: inout [UInt8]) {
        for entry in digests {
            bytes.append(entry.attribute.rawValue)
            bytes.append(entry.digest)
        }
    }

    /// Parses `packed`; nil for anything else, including digests out of order.
    package static func unpacked(_ bytes: [UInt8]) -> [AttributeDigest]? {
        unsafe bytes.withUnsafeBytes { unsafe unpacked(buffer: $0) }
    }

    /// Parses `packed` in place; nil for anything else.
    ///
    /// The buffer is read and not kept.
    package static func unpacked(buffer: UnsafeRawBufferPointer) -> [AttributeDigest]? {
        guard buffer.count % packedDigestByteCount == 0 else { return nil }
        var digests: [AttributeDigest] = []
        digests.reserveCapacity(buffer.count / packedDigestByteCount)
        var last: UInt8 = 0
        for start in stride(from: 0, to: buffer.count, by: packedDigestByteCount) {
            let number = unsafe buffer[start]
            let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[(start + 1)..<(start + packedDigestByteCount)])
            guard number > last, let attribute = Attribute(rawValue: number), let digest = unsafe IndexDigest(buffer: rest)
            else { return nil }
            last = number
            digests.append(AttributeDigest(attribute, digest))
        }
        return digests
    }
}
