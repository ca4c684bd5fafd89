// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// A request that may satisfy access control.
package protocol AuthenticatedRequest: Sendable {
    var authentication: Authentication { get set }
}

extension AddRequest: AuthenticatedRequest {}
extension MatchRequest: AuthenticatedRequest {}
extension UpdateRequest: AuthenticatedRequest {}
extension DeleteRequest: AuthenticatedRequest {}

/// The items that a call is about, in typed form.
package struct ItemQuery: Sendable {
    package var itemClass: ItemClass
    /// The persistent reference of the item.
    ///
    /// With it, local and synchronizable items match.
    package var reference: PersistentReference?
    /// Attribute values that must all be equal.
    ///
    /// May include `agrp`, `pdmn`, `musr`, dates, and `sha1`; never `sync` or `tomb`.
    package var attributes: ItemAttributes
    package var synchronizability: Synchronizability
    package var tombstones: Tombstones
    /// Limits the search to internet passwords whose server is this host or a subdomain of it.
    package var hostOrSubdomain: String?

    /// Which items a search sees: local items and synchronizable ones with the same name can exist side by side.
    package enum Synchronizability: CaseIterable, Sendable {
        case local, synchronizable, either
    }

    /// Whether a search sees items or the tombstones that deleted synchronizable items leave.
    package enum Tombstones: Sendable {
        case hidden, only
    }

    package init(
        itemClass: ItemClass, reference: PersistentReference? = nil, attributes: ItemAttributes = ItemAttributes(),
        synchronizability: Synchronizability = .local, tombstones: Tombstones = .hidden, hostOrSubdomain: String? = nil
    ) {
        self.itemClass = itemClass
        self.reference = reference
        self.attributes = attributes
        self.synchronizability = synchronizability
        self.tombstones = tombstones
        self.hostOrSubdomain = hostOrSubdomain
    }
}

/// A `SecItemAdd` request.
package struct AddRequest: Sendable {
    package var itemClass: ItemClass
    /// The caller's attributes, with `sync` and `tomb` as 0 or 1; without `pdmn`, which is in `accessControl`.
    package var attributes: ItemAttributes
    /// The secret.
    ///
    /// Nil adds an item without one, which differs from an item with an empty secret.
    package var secret: Data?
    /// The protection; nil: the default of the class and group.
    package var accessControl: AccessControl?
    package var authentication: Authentication

    package init(
        itemClass: ItemClass, attributes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil,
        authentication: Authentication = Authentication()
    ) {
        self.itemClass = itemClass
        self.attributes = attributes
        self.secret = secret
        self.accessControl = accessControl
        self.authentication = authentication
    }
}

/// A `SecItemCopyMatching` request.
package struct MatchRequest: Sendable {
    package var query: ItemQuery
    /// The maximum number of items after all filters; nil: no limit.
    package var limit: Int?
    /// Whether the secrets are opened and returned.
    package var includesSecrets: Bool
    /// Which attributes are returned.
    ///
    /// With none, a search for secrets leaves the attributes sealed.
    package var attributes: AttributeSelection
    /// Whether an item that cannot be read fails the search.
    ///
    /// If false, a search that finds readable items leaves out the unreadable ones.
    package var failsIfUnreadable: Bool
    package var authentication: Authentication

    package init(
        query: ItemQuery, limit: Int? = 1, includesSecrets: Bool = false, attributes: AttributeSelection = .all,
        failsIfUnreadable: Bool = false, authentication: Authentication = Authentication()
    ) {
        self.query = query
        self.limit = limit
        self.includesSecrets = includesSecrets
        self.attributes = attributes
        self.failsIfUnreadable = failsIfUnreadable
        self.authentication = authentication
    }
}

/// A `SecItemUpdate` request.
package struct UpdateRequest: Sendable {
    package var query: ItemQuery
    /// The new values.
    ///
    /// May include `agrp`, `sync`, and `cdat`; never `pdmn`, `mdat`, `sha1`, `tomb`, or `musr`.
    package var changes: ItemAttributes
    /// The new secret; nil keeps the old one.
    package var secret: Data?
    /// The new protection, constraints included; nil keeps the old one.
    package var accessControl: AccessControl?
    /// The new protection class, with unchanged constraints.
    package var accessibility: ItemAccessibility?
    /// Whether a moved item leaves a tombstone; nil: synchronizable items do, local ones do not.
    package var leavesTombstone: Bool?
    package var authentication: Authentication

    package init(
        query: ItemQuery, changes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil,
        accessibility: ItemAccessibility? = nil,
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

    /// Adds the needs of the new protection class to a failure's, so that one prompt satisfies both.
    func addingNeedsOfNewClass(_ failure: KeychainFailure) -> KeychainFailure {
        guard var needs = failure.needs, needs.passcodeClasses != nil, let new = accessControl?.accessibility ?? accessibility else {
            return failure
        }
        needs.addPasscodeClasses([new])
        return .authenticationRequired(needs)
    }

    /// The protection of an item after the update.
    func protection(inPlaceOf old: AccessControl) -> AccessControl {
        accessControl ?? AccessControl(accessibility ?? old.accessibility, constraint: old.constraint)
    }
}

/// A `SecItemDelete` request.
package struct DeleteRequest: Sendable {
    package var query: ItemQuery
    /// Whether a deleted item leaves a tombstone; nil: synchronizable items do, local ones do not.
    package var leavesTombstone: Bool?
    package var authentication: Authentication

    package init(query: ItemQuery, leavesTombstone: Bool? = nil, authentication: Authentication = Authentication()) {
        self.query = query
        self.leavesTombstone = leavesTombstone
        self.authentication = authentication
    }
}
