// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// `SecItemUpdate`, typed.
package struct UpdateRequest: Sendable {
    package var query: ItemQuery
    /// New values; may hold `agrp`, `sync`, `cdat`; never `pdmn`, `mdat`, `sha1`, `tomb` or `musr`.
    package var changes: ItemAttributes
    /// A new secret; nil leaves the old one.
    package var secret: Data?
    /// A new protection, constraints included.
    package var accessControl: AccessControl?
    /// A new class alone: what the item asks for stays.
    package var accessibility: Accessibility?
    /// Overrides whether a moved synchronizable item leaves a tombstone; nil is the usual rule.
    package var leavesTombstone: Bool?
    package var authentication: Authentication

    package init(
        query: ItemQuery, changes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil,
        accessibility: Accessibility? = nil,
        leavesTombstone: Bool? = nil, authentication: Authentication = Authentication()
    ) {
        self.query = query
        self.changes = changes
        self.secret = secret
        self.accessControl = accessControl
        self.accessibility = accessibility
        self.leavesTombstone = leavesTombstone
        self.authentication = authentication
    }

    /// The same failure, needing what the new class takes as well: one question serves both.
    func widening(_ failure: KeychainFailure) -> KeychainFailure {
        guard var needs = failure.needs, needs.passcodeClasses != nil, let new = accessControl?.accessibility ?? accessibility else {
            return failure
        }
        needs.formUnion(AuthenticationNeeds(passcodeFor: [new]))
        return .needing(needs)
    }

    /// How an item is protected after the update.
    func protection(inPlaceOf old: AccessControl) -> AccessControl {
        accessControl ?? AccessControl(accessibility ?? old.accessibility, constraint: old.constraint)
    }
}
