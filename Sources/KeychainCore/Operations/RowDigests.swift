// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// All digests of an item, for searches and for uniqueness.
struct RowDigests {
    let service: IndexDigest
    let account: IndexDigest
    let remainingKey: IndexDigest
    let accessGroup: IndexDigest
    let others: [AttributeDigest]

    init(of attributes: ItemAttributes, in itemClass: ItemClass, using digests: DigestCache) throws(KeychainFailure) {
        let leading = PrimaryKey.leading(of: itemClass)
        func digest(_ attribute: Attribute) throws(KeychainFailure) -> IndexDigest {
            let value = attributes[attribute] ?? PrimaryKey.defaultValue(of: attribute)
            return try digests.digest(of: value, for: attribute, in: itemClass)
        }
        service = try digest(leading.service)
        account = try digest(leading.account)
        accessGroup = try digest(.accessGroup)
        remainingKey = try digests.remainingKeyDigest(of: attributes, in: itemClass)
        var others: [AttributeDigest] = []
        for entry in attributes.entries where Self.hasOwnDigest(entry.attribute, entry.value, in: itemClass) {
            others.append(AttributeDigest(entry.attribute, try digest(entry.attribute)))
        }
        self.others = others
    }

    /// The search for rows with the same primary key.
    func samePrimaryKey(in itemClass: ItemClass) -> RowQuery {
        RowQuery(itemClass: itemClass, serviceDigest: service, accountDigest: account, remainingKeyDigest: remainingKey)
    }

    /// Returns whether the attribute gets a digest of its own.
    ///
    /// Dates and `sha1` are never indexed. Class, flags, and the leading attributes have columns. Other parts of the primary key have no
    /// digest if they have their default value.
    static func hasOwnDigest(_ attribute: Attribute, _ value: AttributeValue, in itemClass: ItemClass) -> Bool {
        let leading = PrimaryKey.leading(of: itemClass)
        switch attribute {
        case leading.service, leading.account, .accessGroup, .accessible, .synchronizable, .tombstone, .creationDate,
            .modificationDate, .sha1:
            return false
        default:
            return !isDefaultOfPrimaryKey(attribute, value, in: itemClass)
        }
    }

    static func isDefaultOfPrimaryKey(_ attribute: Attribute, _ value: AttributeValue, in itemClass: ItemClass) -> Bool {
        PrimaryKey.attributes(of: itemClass).contains(attribute) && value.matches(PrimaryKey.defaultValue(of: attribute))
    }
}

/// Computes the digests of searches and rows, and caches those that every call repeats.
///
/// Services, servers, and access groups are few and used by every call, so their digests are cached; those of accounts are not. The
/// cache contains names, which the program has in memory anyway, and digests, which are on disk.
package final class DigestCache: Sendable {
    private struct Key: Hashable {
        let itemClass: ItemClass
        let attribute: Attribute
        let value: AttributeValue
    }

    private struct RemainingKey: Hashable {
        let itemClass: ItemClass
        let values: [AttributeValue]
    }

    private struct Entries {
        var single: [Key: IndexDigest] = [:]
        var remaining: [RemainingKey: IndexDigest] = [:]
    }

    /// A full cache is emptied, so a program that uses more names only computes digests again.
    private static let capacity = 256
    /// Longer values are unusual and would occupy much memory, so they are not cached.
    private static let longestCachedByteCount = 1_024

    private let cipher: any ItemCipher
    private let entries = Mutex(Entries())

    package init(cipher: any ItemCipher) {
        self.cipher = cipher
    }

    package func digest(
        of value: AttributeValue, for attribute: Attribute, in itemClass: ItemClass
    ) throws(KeychainFailure) -> IndexDigest {
        guard attribute == .service || attribute == .server || attribute == .accessGroup, value.isAtMost(Self.longestCachedByteCount) else {
            return try cipher.digest(of: value, for: attribute, in: itemClass)
        }
        let key = Key(itemClass: itemClass, attribute: attribute, value: value)
        if let known = entries.withLock({ $0.single[key] }) { return known }
        let digest = try cipher.digest(of: value, for: attribute, in: itemClass)
        entries.withLock { entries in
            if entries.single.count >= Self.capacity { entries.single.removeAll() }
            entries.single[key] = digest
        }
        return digest
    }

    /// Returns the digest of all attributes of the primary key except the two leading ones.
    func remainingKeyDigest(of attributes: ItemAttributes, in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest {
        let leading = PrimaryKey.leading(of: itemClass)
        let parts = PrimaryKey.attributes(of: itemClass)
            .filter { $0 != leading.service && $0 != leading.account }
            .map { ($0, attributes[$0] ?? PrimaryKey.defaultValue(of: $0)) }
        guard parts.allSatisfy({ $0.1.isAtMost(Self.longestCachedByteCount) }) else { return try cipher.digest(of: parts, in: itemClass) }
        let key = RemainingKey(itemClass: itemClass, values: parts.map(\.1))
        if let known = entries.withLock({ $0.remaining[key] }) { return known }
        let digest = try cipher.digest(of: parts, in: itemClass)
        entries.withLock { entries in
            if entries.remaining.count >= Self.capacity { entries.remaining.removeAll() }
            entries.remaining[key] = digest
        }
        return digest
    }
}

extension AttributeValue {
    fileprivate func isAtMost(_ byteCount: Int) -> Bool {
        // Only counted, within the closure.
        unsafe withComparedBytes { $0.count <= byteCount }
    }
}
