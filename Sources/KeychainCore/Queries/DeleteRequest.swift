// SPDX-License-Identifier: Apache-2.0

/// `SecItemDelete`, typed.
package struct DeleteRequest: Sendable {
    package var query: ItemQuery
    /// Overrides whether a deleted item leaves a tombstone; nil: synchronizable items do, local ones do not.
    package var leavesTombstone: Bool?
    package var authentication: Authentication

    package init(query: ItemQuery, leavesTombstone: Bool? = nil, authentication: Authentication = Authentication()) {
        self.query = query
        self.leavesTombstone = leavesTombstone
        self.authentication = authentication
    }
}
