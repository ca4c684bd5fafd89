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

/// Which items a call is about: parsed from a dictionary once, typed from then on.
package struct ItemQuery: Sendable {
    package var itemClass: ItemClass
    /// The item itself, by its persistent reference.
    ///
    /// Then local and synchronizable items are found alike.
    package var reference: PersistentReference?
    /// Values that must be equal, AND-ed.
    ///
    /// Holds `agrp`, `pdmn`, `musr`, dates and `sha1` too; never `sync` or `tomb`.
    package var attributes: ItemAttributes
    package var synchronizability: Synchronizability
    package var tombstones: Tombstones
    /// Keep internet passwords whose server is this host or a host below it.
    package var hostOrSubdomain: String?

    /// Local items and synchronizable ones live side by side; which of them a search sees.
    package enum Synchronizability: Sendable {
        case local, synchronizable, either
    }

    /// What synchronizable items leave behind when deleted is invisible unless asked for.
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

/// `SecItemAdd`, typed.
package struct AddRequest: Sendable {
    package var itemClass: ItemClass
    /// As the caller gave them, with `sync` and `tomb` as 0 or 1; without `pdmn`, which is in `accessControl`.
    package var attributes: ItemAttributes
    /// Nil adds an item without a secret, which is not the same as an empty one.
    package var secret: Data?
    /// Nil: the default of the class and group.
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
    func addingNeedsOfNewClass(_ failure: KeychainFailure) -> KeychainFailure {
        guard var needs = failure.needs, needs.passcodeClasses != nil, let new = accessControl?.accessibility ?? accessibility else {
            return failure
        }
        needs.formUnion(AuthenticationNeeds(passcodeFor: [new]))
        return .authenticationRequired(needs)
    }

    /// How an item is protected after the update.
    func protection(inPlaceOf old: AccessControl) -> AccessControl {
        accessControl ?? AccessControl(accessibility ?? old.accessibility, constraint: old.constraint)
    }
}

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
