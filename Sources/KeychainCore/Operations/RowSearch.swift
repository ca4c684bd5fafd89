// SPDX-License-Identifier: Apache-2.0

/// A query divided into the part that the store evaluates by digests and the part evaluated on the row, before or after opening it.
struct RowSearch {
    let rowQuery: RowQuery
    /// Parts of the primary key that must have their default value: matching rows have no digest for them.
    private let attributesWithoutDigest: [Attribute]
    /// Dates and `sha1`, which are only in the sealed part.
    private let sealedFilters: [ItemAttributes.Entry]
    private let hostOrSubdomain: String?

    /// Whether matching a row requires its sealed attributes.
    ///
    /// If so, it is unknown whether a locked row matches.
    var needsOpening: Bool { !sealedFilters.isEmpty || hostOrSubdomain != nil }

    /// Whether the query names enough of the primary key that only a few rows can match.
    var isSelective: Bool { rowQuery.id != nil || rowQuery.serviceDigest != nil && rowQuery.accountDigest != nil }

    init(_ query: ItemQuery, groups: [String], using digests: DigestCache) throws(KeychainFailure) {
        let itemClass = query.itemClass
        let leading = PrimaryKey.leading(of: itemClass)
        var rowQuery = RowQuery(itemClass: itemClass, id: query.reference?.id)
        var attributesWithoutDigest: [Attribute] = []
        var sealedFilters: [ItemAttributes.Entry] = []
        for entry in query.attributes.entries {
            switch entry.attribute {
            case .accessGroup, .synchronizable, .tombstone:
                break
            case .accessible:
                rowQuery.accessibility = query.attributes.text(.accessible).flatMap(ItemAccessibility.init(rawValue:))
            case .creationDate, .modificationDate, .sha1:
                sealedFilters.append(entry)
            case leading.service:
                rowQuery.serviceDigest = try digests.digest(of: entry.value, for: entry.attribute, in: itemClass)
            case leading.account:
                rowQuery.accountDigest = try digests.digest(of: entry.value, for: entry.attribute, in: itemClass)
            default:
                guard RowDigests.hasOwnDigest(entry.attribute, entry.value, in: itemClass) else {
                    attributesWithoutDigest.append(entry.attribute)
                    continue
                }
                let digest = try digests.digest(of: entry.value, for: entry.attribute, in: itemClass)
                rowQuery.attributeDigests.append(AttributeDigest(entry.attribute, digest))
            }
        }
        // Every search includes `musr`, whose default is empty.
        if query.reference == nil, query.attributes[.multiUser] == nil { attributesWithoutDigest.append(.multiUser) }
        var groupDigests: [IndexDigest] = []
        for group in groups {
            groupDigests.append(try digests.digest(of: .string(group), for: .accessGroup, in: itemClass))
        }
        rowQuery.accessGroupDigests = groupDigests
        rowQuery.isTombstone = query.tombstones == .only
        rowQuery.isSynchronizable =
            switch query.synchronizability {
            case .local: false
            case .synchronizable: true
            case .either: nil
            }
        self.rowQuery = rowQuery
        self.attributesWithoutDigest = attributesWithoutDigest
        self.sealedFilters = sealedFilters
        self.hostOrSubdomain = query.hostOrSubdomain
    }

    func accepts(_ header: RowHeader) -> Bool {
        attributesWithoutDigest.isEmpty || !header.attributeDigests.contains { attributesWithoutDigest.contains($0.attribute) }
    }

    func accepts(_ attributes: ItemAttributes) -> Bool {
        sealedFilters.allSatisfy { filter in attributes[filter.attribute]?.matches(filter.value) ?? false } && acceptsHost(of: attributes)
    }

    /// Returns whether the server is the host or a subdomain of it.
    ///
    /// Case-sensitive, as on Apple's platforms.
    private func acceptsHost(of attributes: ItemAttributes) -> Bool {
        guard let hostOrSubdomain else { return true }
        guard let server = attributes.text(.server) else { return false }
        return server.hasSameBytes(as: hostOrSubdomain) || server.hasSuffixOfSameBytes(as: "." + hostOrSubdomain)
    }
}

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

    /// The digests of a row that was opened, which authenticates its header.
    init(storedIn header: RowHeader) {
        service = header.serviceDigest
        account = header.accountDigest
        remainingKey = header.remainingKeyDigest
        accessGroup = header.accessGroupDigest
        others = header.attributeDigests
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
        private var single: [Key: IndexDigest] = [:]
        /// The entries used last.
        ///
        /// Comparing them takes a tenth of the instructions of hashing a name.
        private var recent: [(key: Key, digest: IndexDigest)] = []
        var remaining: [RemainingKey: IndexDigest] = [:]

        private static let recentCount = 8

        mutating func digest(for key: Key) -> IndexDigest? {
            if let entry = recent.first(where: { $0.key == key }) { return entry.digest }
            guard let digest = single[key] else { return nil }
            noteUse(key, digest)
            return digest
        }

        mutating func insert(_ digest: IndexDigest, for key: Key) {
            if single.count >= DigestCache.capacity { single.removeAll() }
            single[key] = digest
            noteUse(key, digest)
        }

        private mutating func noteUse(_ key: Key, _ digest: IndexDigest) {
            if recent.count >= Self.recentCount { recent.removeFirst() }
            recent.append((key, digest))
        }
    }

    /// A full cache is emptied, so a program that uses more names only computes digests again.
    private static let capacity = 256
    /// Longer values are unusual and would occupy much memory, so they are not cached.
    private static let longestCachedByteCount = 1_024

    private let cipher: any ItemCipher
    private let entries = LockedValue(Entries())

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
        if let known = entries.withLock({ $0.digest(for: key) }) { return known }
        let digest = try cipher.digest(of: value, for: attribute, in: itemClass)
        entries.withLock { $0.insert(digest, for: key) }
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
