// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The class of an item.
///
/// The raw value is Apple's, and the beginning of every persistent reference.
package enum ItemClass: String, Sendable, CaseIterable {
    case genericPassword = "genp"
    case internetPassword = "inet"
    case certificate = "cert"
    case key = "keys"
    case identity = "idnt"

    /// The number of the class on disk and in all authenticated data.
    package var code: UInt8 {
        switch self {
        case .genericPassword: 1
        case .internetPassword: 2
        case .certificate: 3
        case .key: 4
        case .identity: 5
        }
    }

    package init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }

    /// Whether the class can be stored.
    ///
    /// Certificates, keys, and identities cannot be stored yet.
    package var isPassword: Bool { self == .genericPassword || self == .internetPassword }
}

/// The attributes that make an item unique in its class.
///
/// Source: SecItem-behavior.md, section 3.2. `ggrp`, the sharing group, is left out, because it requires an entitlement that no program
/// has on this platform.
package enum PrimaryKey {
    /// All attributes of the primary key, in the order of their numbers.
    package static func attributes(of itemClass: ItemClass) -> [Attribute] {
        itemClass == .internetPassword ? internetPassword : genericPassword
    }

    /// The two attributes that almost every search names.
    ///
    /// Each has its own column; the others share one digest.
    package static func leading(of itemClass: ItemClass) -> (service: Attribute, account: Attribute) {
        (itemClass == .internetPassword ? .server : .service, .account)
    }

    /// The default of an attribute in the primary key: an absent value and this value are the same key.
    package static func defaultValue(of attribute: Attribute) -> AttributeValue {
        switch attribute.kind {
        case .number, .flag: .number(0)
        case .uuid: .data(Data())
        default: .string("")
        }
    }

    private static let genericPassword: [Attribute] = [
        .account, .service, .accessGroup, .synchronizable, .syncViewHint, .tokenID, .multiUser,
    ]

    private static let internetPassword: [Attribute] = [
        .account, .accessGroup, .securityDomain, .server, .protocol, .authenticationType, .port, .path, .synchronizable,
        .syncViewHint, .tokenID, .multiUser,
    ]
}
