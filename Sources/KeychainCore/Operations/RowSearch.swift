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
