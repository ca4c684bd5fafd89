// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// `SecItemAdd`, typed.
package struct AddRequest: Sendable {
    package var itemClass: ItemClass
    /// As the caller gave them, with `sync` and `tomb` as 0 or 1; without `pdmn`, which is in `accessControl`.
    package var attributes: ItemAttributes
    /// Nil adds an item without a secret, which is not the same as an empty one.
    package var secret: Data?
    /// Nil: the default of the class and group.
    package var accessControl: AccessControl?

    package init(
        itemClass: ItemClass, attributes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil
    ) {
        self.itemClass = itemClass
        self.attributes = attributes
        self.secret = secret
        self.accessControl = accessControl
    }
}

/// `SecItemCopyMatching`, typed.
package struct MatchRequest: Sendable {
    package var query: ItemQuery
    /// How many items at the most; nil for all. Counted after every filter.
    package var limit: Int?
    /// Without this the secrets stay sealed.
    package var includesSecrets: Bool

    package init(query: ItemQuery, limit: Int? = 1, includesSecrets: Bool = false) {
        self.query = query
        self.limit = limit
        self.includesSecrets = includesSecrets
    }
}

/// `SecItemUpdate`, typed.
package struct UpdateRequest: Sendable {
    package var query: ItemQuery
    /// New values; may hold `agrp`, `sync`, `cdat`; never `pdmn`, `mdat`, `sha1`, `tomb` or `musr`.
    package var changes: ItemAttributes
    /// A new secret; nil leaves the old one.
    package var secret: Data?
    package var accessControl: AccessControl?
    /// Overrides whether a moved synchronizable item leaves a tombstone; nil is the usual rule.
    package var leavesTombstone: Bool?

    package init(
        query: ItemQuery, changes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil,
        leavesTombstone: Bool? = nil
    ) {
        self.query = query
        self.changes = changes
        self.secret = secret
        self.accessControl = accessControl
        self.leavesTombstone = leavesTombstone
    }
}

/// `SecItemDelete`, typed.
package struct DeleteRequest: Sendable {
    package var query: ItemQuery
    /// Overrides whether a deleted item leaves a tombstone; nil: synchronizable items do, local ones do not.
    package var leavesTombstone: Bool?

    package init(query: ItemQuery, leavesTombstone: Bool? = nil) {
        self.query = query
        self.leavesTombstone = leavesTombstone
    }
}
