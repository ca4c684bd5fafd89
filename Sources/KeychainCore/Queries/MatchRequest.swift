// SPDX-License-Identifier: Apache-2.0

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
