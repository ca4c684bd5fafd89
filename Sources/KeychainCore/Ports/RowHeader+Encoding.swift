// SPDX-License-Identifier: Apache-2.0

/// The one encoding of a header: what the sealed parts and the row tag are bound to. Part of the on-disk format.
extension RowHeader {
    /// Fixed fields first, each of a fixed size; then the digests, counted; then the constraints, behind a flag.
    package func encoded(storeID: StoreID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(192 + attributeDigests.count * 17)
        bytes.append(formatVersion)
        bytes.append(contentsOf: storeID.bytes)
        bytes.append(reference.itemClass.code)
        bytes.append(contentsOf: reference.id.bytes)
        bytes.append(accessibility.code)
        bytes.append(littleEndian: classKeyGeneration)
        bytes.append(contentsOf: revision.bytes)
        bytes.append((isSynchronizable ? 1 : 0) | (isTombstone ? 2 : 0))
        bytes.append(contentsOf: serviceDigest.bytes)
        bytes.append(contentsOf: accountDigest.bytes)
        bytes.append(contentsOf: remainingKeyDigest.bytes)
        bytes.append(contentsOf: accessGroupDigest.bytes)
        bytes.append(lengthPrefixed: Self.packed(attributeDigests))
        if let constraints {
            bytes.append(1)
            bytes.append(lengthPrefixed: constraints)
        } else {
            bytes.append(0)
        }
        return bytes
    }

    /// The digests as the store keeps them in one column: attribute number and sixteen bytes, in ascending order.
    package static func packed(_ digests: [AttributeDigest]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digests.count * 17)
        for entry in digests {
            bytes.append(entry.attribute.rawValue)
            bytes.append(contentsOf: entry.digest.bytes)
        }
        return bytes
    }

    /// Parses `packed`; nil for anything else, also for digests out of order.
    package static func unpacked(_ bytes: some Collection<UInt8>) -> [AttributeDigest]? {
        guard bytes.count % 17 == 0 else { return nil }
        var reader = ByteReader(bytes)
        var digests: [AttributeDigest] = []
        while let number = reader.readByte() {
            guard let attribute = Attribute(rawValue: number), number > (digests.last?.attribute.rawValue ?? 0),
                let digest = reader.readBytes(IndexDigest.byteCount).flatMap({ IndexDigest($0) })
            else { return nil }
            digests.append(AttributeDigest(attribute, digest))
        }
        return digests
    }
}
