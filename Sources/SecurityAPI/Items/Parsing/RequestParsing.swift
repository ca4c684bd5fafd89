// SPDX-License-Identifier: Apache-2.0
internal import Foundation
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
    /// The attributes that a search must keep to return these parts.
    fileprivate var selectedAttributes: AttributeSelection {
        switch self {
        case .data, .reference, []: .none
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

/// The second dictionary of `SecItemUpdate` after parsing: the changes to the items.
struct ParsedUpdateDictionary {
    let itemClass: ItemClass
    private(set) var attributes = ItemAttributes()
    private(set) var accessibility: ItemAccessibility?
    private(set) var accessControl: SecAccessControl?
    private(set) var secret: Data?

    /// Creates the changes that consist of a secret and, if one is given, an access control.
    init(secret: Data, accessControl: SecAccessControl?, of itemClass: ItemClass) {
        self.itemClass = itemClass
        self.secret = secret
        self.accessControl = accessControl
    }

    /// Parses the changes to items of `itemClass`.
    init(_ dictionary: [String: Any], of itemClass: ItemClass) throws(KeychainFailure) {
        self.itemClass = itemClass
        var fault = FirstFault()
        for (key, value) in dictionary {
            parse(key, value, noting: &fault)
        }
        try fault.throwIfAny()
        try ProtectionRules.check(accessibility, accessControl)
        if attributes.flag(.synchronizable) == true {
            try ProtectionRules.checkSynchronizable(accessControl)
        }
    }

    private mutating func parse(_ key: String, _ value: Any, noting fault: inout FirstFault) {
        do throws(ValueFault) {
            switch DictionaryKey(key) {
            case .attribute(.tombstone), .sharingGroup, .internalAttribute:
                fault.note(.name, key, .parameter, "cannot be changed by an update")
            case .attribute(let attribute) where attribute.belongs(to: itemClass):
                try parse(attribute, DictionaryValue(value))
            case .accessControl: accessControl = try DictionaryValue(value).asAccessControl()
            case .secret: secret = try DictionaryValue(value).asData()
            case .ignored where key == kSecUseDataProtectionKeychain: break
            default: fault.note(.name, key, .noSuchAttribute, "is no attribute an update can change")
            }
        } catch {
            fault.note(error, key)
        }
    }

    private mutating func parse(_ attribute: Attribute, _ value: DictionaryValue) throws(ValueFault) {
        switch attribute {
        case .accessible: accessibility = try value.accessibility()
        case .synchronizable:
            // Accepts both values: the item does not change.
            if case .string(kSecAttrSynchronizableAny) = value { return }
            attributes[.synchronizable] = .number(try value.flag() ? 1 : 0)
        case .multiUser: break
        case .modificationDate, .sha1:
            // The keychain sets these itself, but an invalid value is still a mistake.
            _ = try value.attributeValue(attribute.kind)
        default: attributes[attribute] = try value.attributeValue(attribute.kind)
        }
    }
}

/// The rules for combining protections in one dictionary.
enum ProtectionRules {
    /// Rejects a protection class next to an object created by `SecAccessControlCreateWithFlags`, which has its own.
    ///
    /// The object among the attributes of an item without constraints contains only the class, so it is accepted.
    static func check(_ accessibility: ItemAccessibility?, _ accessControl: SecAccessControl?) throws(KeychainFailure) {
        guard accessibility == nil || accessControl?.carriesConstraints != true else {
            throw KeychainFailure(.parameter, "kSecAttrAccessible and kSecAttrAccessControl exclude each other")
        }
    }

    /// Rejects a synchronizable item with an object created by `SecAccessControlCreateWithFlags`.
    static func checkSynchronizable(_ accessControl: SecAccessControl?) throws(KeychainFailure) {
        guard accessControl?.carriesConstraints != true else {
            throw KeychainFailure(.parameter, "kSecAttrAccessControl and kSecAttrSynchronizable exclude each other")
        }
    }

    /// Returns the protection in the two keys, or nil if both are missing.
    static func protection(_ accessibility: ItemAccessibility?, _ accessControl: SecAccessControl?) -> AccessControl? {
        accessibility.map { AccessControl($0) } ?? accessControl?.accessControl
    }
}
