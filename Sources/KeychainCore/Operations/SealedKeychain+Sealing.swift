// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

extension SealedKeychain {
    /// More than any secret needs, and far below what a store's row and the counts in it can hold.
    package static let largestItemByteCount = 64 << 20

    /// Seals an item under the current class key of its accessibility, and under the keys of its constraint.
    ///
    /// `attributes` gets its `sha1` here.
    ///
    /// Throws `.parameter` for an item that is too large, and a failure that needs the application password where that is missing.
    func seal(
        _ attributes: inout ItemAttributes, secret: Data?, reference: PersistentReference, control: AccessControl
    ) throws(KeychainFailure) -> SealedRow {
        guard attributes.byteCount + (secret?.count ?? 0) <= Self.largestItemByteCount else {
            throw KeychainFailure(.parameter, "an item is larger than \(Self.largestItemByteCount >> 20) MiB")
        }
        let accessibility = control.accessibility
        let generation = try keys.currentGeneration(for: accessibility)
        let digests = try RowDigests(of: attributes, in: reference.itemClass, using: digests)
        // Of all the others: one item has one, whichever keychain seals it, and however often.
        attributes[.sha1] = nil
        attributes[.sha1] = .data(cipher.fingerprint(of: attributes, secret: secret))
        let header = RowHeader(
            reference: reference, accessibility: accessibility, classKeyGeneration: generation, revision: .random(),
            isSynchronizable: attributes.flag(.synchronizable) ?? false, isTombstone: attributes.flag(.tombstone) ?? false,
            serviceDigest: digests.service, accountDigest: digests.account, remainingKeyDigest: digests.remainingKey,
            accessGroupDigest: digests.accessGroup, attributeDigests: digests.others
        )
        let cipher = cipher
        let sealed = attributes
        let constraintKeys = constraintKeys
        return try provider(for: accessibility, generation, control.constraint).withClassKey(for: accessibility, generation: generation) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.seal(sealed, secret: secret, header: header, constraint: control.constraint, with: constraintKeys, under: key)
        }
    }

    /// What a synchronizable item leaves behind: its primary key and dates, marked, without a secret.
    func tombstone(of attributes: ItemAttributes, itemClass: ItemClass) -> ItemAttributes {
        var rest = ItemAttributes()
        for attribute in PrimaryKey.attributes(of: itemClass) { rest[attribute] = attributes[attribute] }
        rest[.accessible] = attributes[.accessible]
        rest[.creationDate] = attributes[.creationDate]
        rest[.modificationDate] = .date(modificationDate(after: attributes))
        rest[.tombstone] = .number(1)
        return rest
    }

    /// Now, and always later than before: whoever compares dates to find the newer version can rely on it.
    func modificationDate(after attributes: ItemAttributes) -> Double {
        max(clock.now(), (attributes.seconds(.modificationDate) ?? -.infinity) + 0.001)
    }

    /// Makes room for a row: a tombstone or a damaged row with its primary key gives way, anything else is a duplicate.
    ///
    /// Returns the reference of a tombstone that gave way: an item added over it takes that up.
    @discardableResult
    func clearWay(
        for row: SealedRow, exceptNumber: Int64? = nil, in writing: any ItemWriting
    ) throws(KeychainFailure) -> PersistentReference? {
        let header = row.header
        let samePrimaryKey = RowQuery(
            itemClass: header.reference.itemClass, serviceDigest: header.serviceDigest, accountDigest: header.accountDigest,
            remainingKeyDigest: header.remainingKeyDigest
        )
        var found: SealedRow?
        try writing.forEachRow(matching: samePrimaryKey, includingSecrets: true) { other throws(KeychainFailure) in
            guard other.number != exceptNumber else { return .proceed }
            found = other
            return .stop
        }
        guard let other = found, let number = other.number else { return nil }
        switch try openForWriting(other) {
        case .damaged:
            try writing.quarantine(number: number, at: clock.now())
            return nil
        case .unsupported(let failure):
            throw failure
        case .opened, .locked, .guarded:
            guard other.header.isTombstone else {
                throw KeychainFailure(.duplicateItem, "an item with this primary key is already there")
            }
            try writing.remove(number: number)
            return other.header.reference
        }
    }
}
