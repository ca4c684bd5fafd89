// SPDX-License-Identifier: Apache-2.0

/// `SecItemCopyMatching`, typed.
package struct MatchRequest: Sendable {
    package var query: ItemQuery
    /// How many items at the most; nil for all.
    ///
    /// Counted after every filter.
    package var limit: Int?
    /// Without this the secrets stay sealed.
    package var includesSecrets: Bool
    /// Which attributes the items come with.
    ///
    /// With none, a search for secrets leaves the attributes sealed.
    package var attributes: AttributeSelection
    package var authentication: Authentication

    package init(
        query: ItemQuery, limit: Int? = 1, includesSecrets: Bool = false, attributes: AttributeSelection = .all,
        authentication: Authentication = Authentication()
    ) {
        self.query = query
        self.limit = limit
        self.includesSecrets = includesSecrets
        self.attributes = attributes
        self.authentication = authentication
    }
}
