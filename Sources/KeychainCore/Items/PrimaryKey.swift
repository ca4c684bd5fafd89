// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

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
