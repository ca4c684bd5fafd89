// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The columns of a row, in the order of every SELECT and INSERT.
///
/// The raw value is both the column's index in a SELECT that begins with the row number, and the index of its parameter in a write.
enum RowColumn: Int32, CaseIterable {
    case itemClass = 1
    case id, formatVersion, accessibility, classKeyGeneration, isSynchronizable, isTombstone
    case serviceDigest, accountDigest, remainingKeyDigest, accessGroupDigest, revision
    case attributeDigests, constraints, wrappedItemKey, tag, sealedAttributes, sealedSecret

    static let numberPosition: Int32 = 0
    /// The index of the parameter for the row number, which follows those of the columns.
    static let numberParameter = Int32(allCases.count) + 1
    /// The index of a quarantined row's time of quarantine, which follows the columns.
    static let secondsPosition = Int32(allCases.count) + 1

    var name: String {
        switch self {
        case .itemClass: "class"
        case .id: "id"
        case .formatVersion: "format_version"
        case .accessibility: "accessibility"
        case .classKeyGeneration: "class_key_generation"
        case .isSynchronizable: "is_synchronizable"
        case .isTombstone: "is_tombstone"
        case .serviceDigest: "service_digest"
        case .accountDigest: "account_digest"
        case .remainingKeyDigest: "remaining_key_digest"
        case .accessGroupDigest: "access_group_digest"
        case .revision: "revision"
        case .attributeDigests: "attribute_digests"
        case .constraints: "constraints"
        case .wrappedItemKey: "wrapped_item_key"
        case .tag: "tag"
        case .sealedAttributes: "sealed_attributes"
        case .sealedSecret: "sealed_secret"
        }
    }

    /// Whether an index contains the column.
    ///
    /// An UPDATE that names such a column rewrites the index even if the value is unchanged.
    var isIndexed: Bool {
        switch self {
        case .id, .serviceDigest, .accountDigest, .remainingKeyDigest: true
        default: false
        }
    }

    static func count(withSecret: Bool) -> Int { allCases.count - (withSecret ? 0 : 1) }

    /// The names, in order, with NULL in place of columns whose values are already known.
    static func list(known: Set<RowColumn> = [], withSecret: Bool) -> String {
        allCases.prefix(count(withSecret: withSecret)).map { known.contains($0) ? "NULL" : $0.name }.joined(separator: ", ")
    }

    static var parameters: String { allCases.map { "?\($0.rawValue)" }.joined(separator: ", ") }

    static func assignments(where isIncluded: (RowColumn) -> Bool) -> String {
        allCases.filter(isIncluded).map { "\($0.name) = ?\($0.rawValue)" }.joined(separator: ", ")
    }
}

// MARK: - Rows as columns and parameters of a statement

extension SQLiteStatement {
    /// The format version reported for a row with malformed columns.
    ///
    /// No row is written with it, so opening such a row fails.
    private static let unreadableFormatVersion: UInt8 = 0

    var rowNumber: Int64 { integer(at: RowColumn.numberPosition) }

    /// The digests packed in a column; nil if they are malformed.
    func attributeDigests(at column: Int32) -> [AttributeDigest]? {
        unsafe withBytes(at: column) { unsafe RowHeader.unpacked(buffer: $0) }
    }

    private func digest(_ column: RowColumn) -> IndexDigest? { identifier(at: column.rawValue) }

    /// Whether the current row meets every condition.
    ///
    /// Reads unencrypted columns in place. A malformed column counts as meeting its condition: the row is found, and opening it fails.
    func rowMatches(_ query: RowQuery) -> Bool {
        if let wanted = query.isTombstone, (integer(at: RowColumn.isTombstone.rawValue) != 0) != wanted { return false }
        if let wanted = query.isSynchronizable, (integer(at: RowColumn.isSynchronizable.rawValue) != 0) != wanted { return false }
        if let wanted = query.itemClass, integer(at: RowColumn.itemClass.rawValue) != Int64(wanted.code) { return false }
        if let wanted = query.accessibility, integer(at: RowColumn.accessibility.rawValue) != Int64(wanted.code) { return false }
        if let wanted = query.id, let found = digest(.id), found != wanted { return false }
        if let wanted = query.serviceDigest, let found = digest(.serviceDigest), found != wanted { return false }
        if let wanted = query.accountDigest, let found = digest(.accountDigest), found != wanted { return false }
        if let wanted = query.remainingKeyDigest, let found = digest(.remainingKeyDigest), found != wanted { return false }
        if let groups = query.accessGroupDigests, let found = digest(.accessGroupDigest), !groups.contains(found) { return false }
        if !query.attributeDigests.isEmpty {
            guard let found = attributeDigests(at: RowColumn.attributeDigests.rawValue) else { return true }
            return query.attributeDigests.allSatisfy(found.contains)
        }
        return true
    }

    /// Binds the search key of a selective search for this query.
    func bindKey(of query: RowQuery) {
        if let id = query.id { return bind(id, at: 1) }
        if let service = query.serviceDigest { bind(service, at: 1) }
        if let account = query.accountDigest { bind(account, at: 2) }
        if let remaining = query.remainingKeyDigest { bind(remaining, at: 3) }
    }

    /// Returns the current row.
    ///
    /// A row with malformed columns is returned in a form that cannot be opened.
    func row(includingSecret: Bool, foundBy query: RowQuery?) -> SealedRow {
        let digests = attributeDigests(at: RowColumn.attributeDigests.rawValue)
        let itemClass = UInt8(exactly: integer(at: RowColumn.itemClass.rawValue)).flatMap(ItemClass.init(code:))
        let accessibility = UInt8(exactly: integer(at: RowColumn.accessibility.rawValue)).flatMap(ItemAccessibility.init(code:))
        let generation = UInt32(exactly: integer(at: RowColumn.classKeyGeneration.rawValue))
        let flags = (integer(at: RowColumn.isSynchronizable.rawValue), integer(at: RowColumn.isTombstone.rawValue))
        let formatVersion = UInt8(exactly: integer(at: RowColumn.formatVersion.rawValue))
        let id = digest(.id)
        let service = query?.serviceDigest ?? digest(.serviceDigest)
        let account = query?.accountDigest ?? digest(.accountDigest)
        let remaining = digest(.remainingKeyDigest)
        let group = digest(.accessGroupDigest)
        let revision = digest(.revision)
        let isUnderstood =
            digests != nil && itemClass != nil && accessibility != nil && generation != nil && (0...1).contains(flags.0)
            && (0...1).contains(flags.1) && id != nil && service != nil && account != nil && remaining != nil && group != nil
            && revision != nil
        let none = Identifier128(high: 0, low: 0)
        return SealedRow(
            number: isNull(at: RowColumn.numberPosition) ? nil : rowNumber,
            header: RowHeader(
                formatVersion: isUnderstood ? formatVersion ?? Self.unreadableFormatVersion : Self.unreadableFormatVersion,
                reference: PersistentReference(itemClass: itemClass ?? .genericPassword, id: id ?? none),
                accessibility: accessibility ?? .always, classKeyGeneration: generation ?? 0, revision: revision ?? none,
                isSynchronizable: flags.0 != 0, isTombstone: flags.1 != 0, serviceDigest: service ?? none,
                accountDigest: account ?? none, remainingKeyDigest: remaining ?? none, accessGroupDigest: group ?? none,
                attributeDigests: digests ?? [],
                constraints: isNull(at: RowColumn.constraints.rawValue) ? nil : bytes(at: RowColumn.constraints.rawValue)),
            wrappedItemKey: bytes(at: RowColumn.wrappedItemKey.rawValue),
            sealedAttributes: bytes(at: RowColumn.sealedAttributes.rawValue),
            sealedSecret: includingSecret ? bytes(at: RowColumn.sealedSecret.rawValue) : [],
            tag: bytes(at: RowColumn.tag.rawValue))
    }

    /// Runs a statement that writes a row.
    ///
    /// `includingIndexed`: the statement includes the columns that are in an index.
    func bindAndRun(_ row: SealedRow, includingIndexed: Bool) throws(KeychainFailure) {
        let header = row.header
        bind(Int64(header.reference.itemClass.code), at: RowColumn.itemClass.rawValue)
        bind(Int64(header.formatVersion), at: RowColumn.formatVersion.rawValue)
        bind(Int64(header.accessibility.code), at: RowColumn.accessibility.rawValue)
        bind(Int64(header.classKeyGeneration), at: RowColumn.classKeyGeneration.rawValue)
        bind(header.isSynchronizable, at: RowColumn.isSynchronizable.rawValue)
        bind(header.isTombstone, at: RowColumn.isTombstone.rawValue)
        bind(header.accessGroupDigest, at: RowColumn.accessGroupDigest.rawValue)
        bind(header.revision, at: RowColumn.revision.rawValue)
        if includingIndexed {
            bind(header.reference.id, at: RowColumn.id.rawValue)
            bind(header.serviceDigest, at: RowColumn.serviceDigest.rawValue)
            bind(header.accountDigest, at: RowColumn.accountDigest.rawValue)
            bind(header.remainingKeyDigest, at: RowColumn.remainingKeyDigest.rawValue)
        }
        let blobs = [
            Blob(index: RowColumn.attributeDigests.rawValue, bytes: RowHeader.packed(header.attributeDigests)),
            Blob(index: RowColumn.constraints.rawValue, bytes: header.constraints),
            Blob(index: RowColumn.wrappedItemKey.rawValue, bytes: row.wrappedItemKey),
            Blob(index: RowColumn.tag.rawValue, bytes: row.tag),
            Blob(index: RowColumn.sealedAttributes.rawValue, bytes: row.sealedAttributes),
            Blob(index: RowColumn.sealedSecret.rawValue, bytes: row.sealedSecret),
        ]
        try withBound(blobs[...]) { () throws(KeychainFailure) in try run() }
    }
}
