// SPDX-License-Identifier: Apache-2.0

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
