// SPDX-License-Identifier: Apache-2.0

/// The one encoding of a header: what the sealed parts and the row tag are bound to. Part of the on-disk format.
extension RowHeader {
    /// Fixed fields first, each of a fixed size; then the digests, counted; then the constraints, behind a flag.
    package func encoded(storeID: StoreID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encodedByteCount)
        appendEncoded(to: &bytes, storeID: storeID)
        return bytes
    }

    /// How many bytes `encoded` has.
    package var encodedByteCount: Int {
        125 + attributeDigests.count * Self.packedDigestByteCount + (constraints.map { $0.count + 4 } ?? 0)
    }

    /// Appends what `encoded` returns: every read and write needs it amid other bytes.
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

    /// The digests as the store keeps them in one column: attribute number and sixteen bytes, in ascending order.
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

    /// Parses `packed`; nil for anything else, also for digests out of order.
    package static func unpacked(_ bytes: [UInt8]) -> [AttributeDigest]? {
        unsafe bytes.withUnsafeBytes { unsafe unpacked(buffer: $0) }
    }

    /// The same, from where the bytes lie.
    ///
    /// The buffer is only read, and not kept.
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
