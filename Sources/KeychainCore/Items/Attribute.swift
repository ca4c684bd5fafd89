// SPDX-License-Identifier: Apache-2.0

/// An attribute of a password item.
///
/// The raw value is the number on disk and the order of the canonical encoding. Never change or reuse one.
package enum Attribute: UInt8, CaseIterable, Sendable {
    case account = 1
    case service = 2
    case accessGroup = 3
    case securityDomain = 4
    case server = 5
    case `protocol` = 6
    case authenticationType = 7
    case port = 8
    case path = 9
    case description = 10
    case comment = 11
    case label = 12
    case alias = 13
    /// `prot`: Apple gives it no public name.
    case protected = 14
    case generic = 15
    case creator = 16
    case type = 17
    case scriptCode = 18
    case isInvisible = 19
    case isNegative = 20
    case hasCustomIcon = 21
    case accessible = 22
    case synchronizable = 24
    case tombstone = 25
    case syncViewHint = 26
    case tokenID = 27
    case multiUser = 29
    case creationDate = 30
    case modificationDate = 31
    case sha1 = 32

    /// Apple's four-letter name, the key in dictionaries.
    package var name: String { Self.names[Int(rawValue)] }

    /// The attribute with Apple's four-letter `name`; nil if passwords have no such attribute.
    package init?(name: String) {
        guard let attribute = Self.byName[name] else { return nil }
        self = attribute
    }

    /// The kind of value, which determines the accepted types and the comparison.
    package enum Kind: Sendable {
        case blob, string, accessibility, number, flag, date, sha1, uuid
    }

    package var kind: Kind {
        switch self {
        case .account, .service, .securityDomain, .server, .authenticationType, .path, .description, .comment, .label, .alias,
            .protected, .generic:
            .blob
        case .accessGroup, .syncViewHint, .tokenID: .string
        case .accessible: .accessibility
        case .protocol, .port, .creator, .type, .scriptCode, .isInvisible, .isNegative, .hasCustomIcon: .number
        case .synchronizable, .tombstone: .flag
        case .creationDate, .modificationDate: .date
        case .sha1: .sha1
        case .multiUser: .uuid
        }
    }

    /// Whether items of the class have this attribute.
    ///
    /// A query with any other attribute fails with errSecNoSuchAttr.
    package func belongs(to itemClass: ItemClass) -> Bool {
        switch self {
        case .service, .generic: itemClass == .genericPassword
        case .securityDomain, .server, .protocol, .authenticationType, .port, .path: itemClass == .internetPassword
        default: itemClass.isPassword
        }
    }

    private static let names: [String] = {
        var names = Array(repeating: "", count: 33)
        for (attribute, name) in table { names[Int(attribute.rawValue)] = name }
        return names
    }()

    private static let byName: [String: Attribute] = Dictionary(uniqueKeysWithValues: table.map { ($1, $0) })

    private static let table: [(Attribute, String)] = [
        (.account, "acct"), (.service, "svce"), (.accessGroup, "agrp"), (.securityDomain, "sdmn"), (.server, "srvr"),
        (.protocol, "ptcl"), (.authenticationType, "atyp"), (.port, "port"), (.path, "path"), (.description, "desc"),
        (.comment, "icmt"), (.label, "labl"), (.alias, "alis"), (.protected, "prot"), (.generic, "gena"), (.creator, "crtr"),
        (.type, "type"), (.scriptCode, "scrp"), (.isInvisible, "invi"), (.isNegative, "nega"), (.hasCustomIcon, "cusi"),
        (.accessible, "pdmn"), (.synchronizable, "sync"), (.tombstone, "tomb"), (.syncViewHint, "vwht"), (.tokenID, "tkid"),
        (.multiUser, "musr"), (.creationDate, "cdat"), (.modificationDate, "mdat"), (.sha1, "sha1"),
    ]
}
