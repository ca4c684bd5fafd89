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
    /// Without this the items come without attributes, which then stay sealed.
    ///
    /// For a search that wants secrets alone.
    package var includesAttributes: Bool
    package var authentication: Authentication

    package init(
        query: ItemQuery, limit: Int? = 1, includesSecrets: Bool = false, includesAttributes: Bool = true,
        authentication: Authentication = Authentication()
    ) {
        self.query = query
        self.limit = limit
        self.includesSecrets = includesSecrets
        self.includesAttributes = includesAttributes
        self.authentication = authentication
    }
}
