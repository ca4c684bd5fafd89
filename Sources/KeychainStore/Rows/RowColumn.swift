// SPDX-License-Identifier: Apache-2.0

/// The columns of a row, in the order of every SELECT and INSERT.
///
/// The raw value is both the column's place in a SELECT that begins with the number, and its parameter in a write.
enum RowColumn: Int32, CaseIterable {
    case itemClass = 1
    case id, formatVersion, accessibility, classKeyGeneration, isSynchronizable, isTombstone
    case serviceDigest, accountDigest, remainingKeyDigest, accessGroupDigest, revision
    case attributeDigests, constraints, wrappedItemKey, tag, sealedAttributes, sealedSecret

    static let numberPosition: Int32 = 0
    /// The parameter that follows those of the columns.
    static let numberParameter = Int32(allCases.count) + 1
    /// Where a quarantined row has the time it was set aside: behind the columns.
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

    /// Whether an index has the column.
    ///
    /// Naming it in an UPDATE rewrites the index even when the value stays.
    var isIndexed: Bool {
        switch self {
        case .id, .serviceDigest, .accountDigest, .remainingKeyDigest: true
        default: false
        }
    }

    static func count(withSecret: Bool) -> Int { allCases.count - (withSecret ? 0 : 1) }

    /// The names, in order, with NULL in the place of those whose values are known already.
    static func list(known: Set<RowColumn> = [], withSecret: Bool) -> String {
        allCases.prefix(count(withSecret: withSecret)).map { known.contains($0) ? "NULL" : $0.name }.joined(separator: ", ")
    }

    static var parameters: String { allCases.map { "?\($0.rawValue)" }.joined(separator: ", ") }

    static func assignments(where isIncluded: (RowColumn) -> Bool) -> String {
        allCases.filter(isIncluded).map { "\($0.name) = ?\($0.rawValue)" }.joined(separator: ", ")
    }
}
