// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The kind of an item.
///
/// The raw value is Apple's, and it begins every persistent reference.
package enum ItemClass: String, Sendable, CaseIterable {
    case genericPassword = "genp"
    case internetPassword = "inet"
    case certificate = "cert"
    case key = "keys"
    case identity = "idnt"

    /// The number that stands for the class on disk and in everything that is authenticated.
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

    /// Certificates, keys and identities are named, not yet stored.
    package var isPassword: Bool { self == .genericPassword || self == .internetPassword }
}

/// Which attributes make an item unique in its class.
///
/// Source: secitem behaviour, "UNIQUE tuple" of each class. `ggrp`, the sharing group, is not ours to store: nobody here
/// has the entitlement it needs.
package enum PrimaryKey {
    /// All attributes of the primary key, in the order of their numbers.
    package static func attributes(of itemClass: ItemClass) -> [Attribute] {
        itemClass == .internetPassword ? internetPassword : genericPassword
    }

    /// The two that almost every search names.
    ///
    /// They have columns of their own; the others share one digest.
    package static func leading(of itemClass: ItemClass) -> (service: Attribute, account: Attribute) {
        (itemClass == .internetPassword ? .server : .service, .account)
    }

    /// What a missing part of the key counts as: an absent value and this one are the same key.
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
