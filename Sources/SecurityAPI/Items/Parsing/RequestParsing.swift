// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension ItemQuery {
    /// Creates the query that a dictionary describes.
    init(_ dictionary: ParsedItemDictionary) throws(KeychainFailure) {
        self.init(itemClass: dictionary.itemClass, attributes: dictionary.attributes)
        if let accessibility = dictionary.accessibility {
            attributes[.accessible] = .string(accessibility.rawValue)
        }
        synchronizability =
            switch dictionary.synchronizable {
            case .yes: .synchronizable
            case .any: .either
            case .no: .local
            // A reference finds both local and synchronizable items.
            case nil: dictionary.reference == nil ? .local : .either
            }
        tombstones = dictionary.tombstone == true ? .only : .hidden
        hostOrSubdomain = dictionary.hostOrSubdomain
        switch dictionary.reference {
        case .current(let reference): self.reference = reference
        case .legacy: throw KeychainFailure(.itemNotFound, "no item has a persistent reference of the older form")
        case nil: break
        }
    }
}

extension AddRequest {
    /// Creates the request that the dictionary of `SecItemAdd` describes.
    init(_ dictionary: ParsedItemDictionary) throws(KeychainFailure) {
        guard !dictionary.hasMatchKeys else { throw KeychainFailure(.parameter, "a kSecMatch key has no meaning when an item is added") }
        guard !dictionary.skipsConstrainedItems else {
            throw KeychainFailure(.parameter, "kSecUseAuthenticationUISkip is for searches only")
        }
        if case .legacy? = dictionary.reference {
            throw KeychainFailure(.parameter, "an item cannot be added with a persistent reference of the older form")
        }
        guard dictionary.tombstone != true else { throw KeychainFailure(.parameter, "a tombstone cannot be added") }
        if dictionary.synchronizable == .yes {
            try ProtectionRules.checkSynchronizable(dictionary.accessControl)
        }
        self.init(
            itemClass: dictionary.itemClass, attributes: dictionary.attributes, secret: dictionary.secret,
            accessControl: ProtectionRules.protection(dictionary.accessibility, dictionary.accessControl),
            authentication: dictionary.authentication)
        // The keychain sets these itself for each new item.
        for attribute in [Attribute.creationDate, .modificationDate, .sha1] { attributes[attribute] = nil }
        attributes[.synchronizable] = .number(dictionary.synchronizable == .yes ? 1 : 0)
    }
}

extension MatchRequest {
    /// Creates the request that the dictionary of `SecItemCopyMatching` describes.
    init(_ dictionary: ParsedItemDictionary) throws(KeychainFailure) {
        if let key = dictionary.certificateOnlyMatchKey {
            throw KeychainFailure(.unimplemented, "\(key) is for certificates and identities only")
        }
        guard dictionary.hostOrSubdomain == nil || dictionary.itemClass == .internetPassword else {
            throw KeychainFailure(.unimplemented, "kSecMatchHostOrSubdomainOfHost is for internet passwords only")
        }
        if dictionary.reference != nil {
            guard !dictionary.hasAttributes else {
                throw KeychainFailure(.parameter, "a search by persistent reference takes no attributes")
            }
        }
        guard dictionary.limit != .count(0) else { throw KeychainFailure(.itemNotFound, "kSecMatchLimit is 0") }
        self.init(
            query: try ItemQuery(dictionary), includesSecrets: dictionary.returns.contains(.data),
            attributes: dictionary.returns.selectedAttributes, failsIfUnreadable: dictionary.failsIfUnreadable,
            authentication: dictionary.authentication)
        limit =
            switch dictionary.limit {
            case .one: 1
            case .count(let count): count
            case .all: nil
            }
    }
}

extension ResultParts {
    /// The attributes that a search must open to return these parts.
    fileprivate var selectedAttributes: AttributeSelection {
        switch self {
        case .data: .none
        case .account: .only(.account)
        default: .all
        }
    }
}

extension ParsedItemDictionary {
    /// Whether the dictionary contains an attribute.
    ///
    /// `kSecAttrSynchronizableAny` does not count: it removes a filter.
    fileprivate var hasAttributes: Bool {
        !attributes.isEmpty || accessibility != nil || accessControl != nil || tombstone != nil
            || !(synchronizable == nil || synchronizable == .any)
    }
}

extension UpdateRequest {
    /// Creates the request that the two dictionaries of `SecItemUpdate` describe.
    init(_ query: ParsedItemDictionary, changes: ParsedUpdateDictionary) throws(KeychainFailure) {
        guard query.returns.isEmpty else { throw KeychainFailure(.parameter, "an update returns nothing: no kSecReturn key may be true") }
        try query.checkChangesStoredItems()
        self.init(
            query: try ItemQuery(query), changes: changes.attributes, secret: changes.secret,
            accessControl: changes.accessibility == nil ? changes.accessControl?.accessControl : nil, accessibility: changes.accessibility,
            leavesTombstone: query.leavesTombstone, authentication: query.authentication)
    }
}

extension ParsedItemDictionary {
    /// Checks the rules that apply to both updates and deletions.
    func checkChangesStoredItems() throws(KeychainFailure) {
        guard !hasMatchKeys else { throw KeychainFailure(.parameter, "a kSecMatch key is for searches only") }
        guard !skipsConstrainedItems else { throw KeychainFailure(.parameter, "kSecUseAuthenticationUISkip is for searches only") }
        if case .legacy? = reference, !attributes.isEmpty {
            throw KeychainFailure(.parameter, "a persistent reference of the older form takes no attributes")
        }
    }
}

extension DeleteRequest {
    /// Creates the request that the dictionary of `SecItemDelete` describes.
    ///
    /// Ignores `kSecReturn…` keys: a deletion has no result.
    init(_ dictionary: ParsedItemDictionary) throws(KeychainFailure) {
        try dictionary.checkChangesStoredItems()
        self.init(query: try ItemQuery(dictionary), leavesTombstone: dictionary.leavesTombstone, authentication: dictionary.authentication)
    }
}
