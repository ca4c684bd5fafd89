// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// A caller's dictionary after parsing, with each value in its type.
///
/// The initializers of the requests check the rules of each call.
struct ParsedItemDictionary {
    let itemClass: ItemClass
    /// The attributes without `pdmn`, `sync` and `tomb`, which have properties of their own.
    var attributes = ItemAttributes()
    private(set) var accessibility: ItemAccessibility?
    var accessControl: SecAccessControl?
    private(set) var synchronizable: Synchronizable?
    private(set) var tombstone: Bool?
    var secret: Data?
    private(set) var reference: Reference?
    private(set) var returns: ResultParts = []
    private(set) var limit = Limit.one
    private(set) var hostOrSubdomain: String?
    private(set) var failsIfUnreadable = false
    private(set) var hasMatchKeys = false
    /// A match key that only certificates and identities support.
    private(set) var certificateOnlyMatchKey: String?
    private(set) var authentication = Authentication()
    private(set) var leavesTombstone: Bool?
    /// The value of `kSecUseAuthenticationUI`, or nil.
    private var interaction: Authentication.Interaction?
    private var isInteractionForbidden = false
    private var hasSharingGroup = false

    /// Whether items with access control are left out.
    var skipsConstrainedItems: Bool { authentication.interaction == .skippingItems }

    /// The value of `kSecAttrSynchronizable`.
    enum Synchronizable {
        case no, yes, any
    }

    /// The value of `kSecMatchLimit`.
    enum Limit: Equatable {
        case one
        /// Zero or more, returned as an array.
        case count(Int)
        case all
    }

    /// The value of `kSecValuePersistentRef`.
    enum Reference {
        case current(PersistentReference)
        /// Apple's older form of twelve bytes, a class and a row number. This keychain never returned one, so it never matches an item.
        case legacy

        static let legacyByteCount = 12
    }

    /// The maximum number of keys in a dictionary, the same as in Apple's keychain.
    static let maximumKeyCount = 128

    /// Parses a query, or the attributes of an item to add.
    init(_ dictionary: [String: Any]) throws(KeychainFailure) {
        guard dictionary.count <= Self.maximumKeyCount else {
            throw KeychainFailure(.parameter, "the dictionary has more than \(Self.maximumKeyCount) keys")
        }
        (itemClass, reference) = try Self.parseClass(of: dictionary)
        try parse(dictionary)
    }

    /// Returns the dictionary with further entries, which name neither the class nor a persistent reference.
    func adding(_ entries: [String: Any]) throws(KeychainFailure) -> ParsedItemDictionary {
        var dictionary = self
        try dictionary.parse(entries)
        return dictionary
    }

    private mutating func parse(_ entries: [String: Any]) throws(KeychainFailure) {
        var fault = FirstFault()
        for (key, value) in entries {
            parse(key, value, noting: &fault)
        }
        try fault.throwIfAny()
        // The older key has an effect only without the newer one.
        authentication.interaction = interaction ?? (isInteractionForbidden ? .forbidden : .allowed)
        try checkCombinations()
    }

    // MARK: The class

    /// Returns the class, from `kSecClass` or from the persistent reference, and the reference.
    private static func parseClass(of dictionary: [String: Any]) throws(KeychainFailure) -> (ItemClass, Reference?) {
        let named = try namedClass(of: dictionary)
        let referenced = try reference(of: dictionary)
        guard let itemClass = named ?? referenced?.itemClass else {
            throw KeychainFailure(.parameter, "the dictionary has neither a kSecClass that is a string nor a persistent reference")
        }
        if let referenced, referenced.itemClass != itemClass {
            throw KeychainFailure(.noSuchClass, "kSecClass is not the class of the persistent reference")
        }
        guard itemClass.isPassword else {
            throw KeychainFailure(
                .unimplemented, "only generic and internet passwords are stored, not items of the class \(itemClass.rawValue)")
        }
        return (itemClass, referenced?.reference)
    }

    private static func namedClass(of dictionary: [String: Any]) throws(KeychainFailure) -> ItemClass? {
        guard let value = dictionary[kSecClass], case .string(let name) = DictionaryValue(value) else { return nil }
        guard let itemClass = ItemClass(rawValue: name) else {
            throw KeychainFailure(.noSuchClass, "the value of kSecClass is none of the kSecClass values")
        }
        return itemClass
    }

    private static func reference(
        of dictionary: [String: Any]
    ) throws(KeychainFailure) -> (itemClass: ItemClass, reference: Reference)? {
        guard let value = dictionary[kSecValuePersistentRef] else { return nil }
        guard case .data(let data) = DictionaryValue(value) else {
            throw KeychainFailure(.parameter, "the value of kSecValuePersistentRef is not data")
        }
        if let reference = PersistentReference(data) { return (reference.itemClass, .current(reference)) }
        guard data.count == Reference.legacyByteCount, let name = String(validating: data.prefix(4), as: UTF8.self),
            let itemClass = ItemClass(rawValue: name)
        else { throw KeychainFailure(.parameter, "the value of kSecValuePersistentRef is not a persistent reference") }
        return (itemClass, .legacy)
    }

    // MARK: Keys and values

    private mutating func parse(_ key: String, _ value: Any, noting fault: inout FirstFault) {
        do throws(ValueFault) {
            switch DictionaryKey(key) {
            case .itemClass, .persistentReference, .ignored: break
            case .attribute(let attribute) where !attribute.belongs(to: itemClass):
                fault.note(.name, key, .noSuchAttribute, "is no attribute of the class \(itemClass.rawValue)")
            case .attribute(let attribute): try parse(attribute, DictionaryValue(value))
            case .accessControl: accessControl = try DictionaryValue(value).asAccessControl()
            case .sharingGroup: hasSharingGroup = true
            case .restrictedInternetAttribute where itemClass == .internetPassword:
                fault.note(.name, key, .missingEntitlement, "needs an entitlement that no program here has")
            case .unknownAttribute, .restrictedInternetAttribute:
                fault.note(.name, key, .noSuchAttribute, "is no attribute of the class \(itemClass.rawValue)")
            case .match(let match): try parse(match, key, value)
            case .returns(let part): returns.set(part, to: try DictionaryValue(value).asBoolean())
            case .secret: secret = try DictionaryValue(value).asData()
            case .authenticationUI: interaction = DictionaryValue(value).interaction
            // For keys about prompts, a value of the wrong type is ignored, as on Apple platforms.
            case .noAuthenticationUI:
                if case .boolean(let flag) = DictionaryValue(value) { isInteractionForbidden = flag }
            case .operationPrompt:
                if case .string(let prompt) = DictionaryValue(value), !prompt.isEmpty { authentication.prompt = prompt }
            case .authenticationContext:
                if case .authenticationContext(let context) = DictionaryValue(value) { authentication.context = context.authentication }
            case .leavesTombstones: leavesTombstone = try DictionaryValue(value).flag()
            case .internalAttribute: fault.note(.name, key, .parameter, "belongs to the keychain itself")
            case .unknown: fault.note(.name, key, .parameter, "is no key of a SecItem dictionary")
            }
        } catch {
            fault.note(error, key)
        }
    }

    private mutating func parse(_ attribute: Attribute, _ value: DictionaryValue) throws(ValueFault) {
        switch attribute {
        case .accessible: accessibility = try value.accessibility()
        case .synchronizable:
            if case .string(kSecAttrSynchronizableAny) = value {
                synchronizable = .any
            } else {
                synchronizable = try value.flag() ? .yes : .no
            }
        case .tombstone: tombstone = try value.flag()
        default: attributes[attribute] = try value.attributeValue(attribute.kind)
        }
    }

    private mutating func parse(_ match: DictionaryKey.Match, _ key: String, _ value: Any) throws(ValueFault) {
        hasMatchKeys = true
        switch match {
        case .limit: limit = try DictionaryValue(value).asLimit()
        case .hostOrSubdomain:
            guard case .string(let host) = DictionaryValue(value) else { throw .type }
            hostOrSubdomain = host
        case .failsIfUnreadable: failsIfUnreadable = try DictionaryValue(value).asBoolean()
        // The failure names the first of several keys in alphabetical order.
        case .certificateOnly: certificateOnlyMatchKey = min(certificateOnlyMatchKey ?? key, key)
        case .ignored: break
        }
    }

    // MARK: Combinations

    private func checkCombinations() throws(KeychainFailure) {
        if hasSharingGroup {
            // Apple's keychain rejects the combination before it checks the entitlement.
            guard synchronizable != .yes else {
                throw KeychainFailure(.parameter, "a sharing group and kSecAttrSynchronizable exclude each other")
            }
            throw KeychainFailure(.missingEntitlement, "a sharing group needs an entitlement that no program here has")
        }
        try ProtectionRules.check(accessibility, accessControl)
        guard authentication.context?.isInvalidated != true else {
            throw KeychainFailure(.authFailed, "the value of kSecUseAuthenticationContext was invalidated", refusal: .invalidContext)
        }
    }
}

extension ResultParts {
    fileprivate mutating func set(_ part: ResultParts, to isWanted: Bool) {
        if isWanted { insert(part) } else { remove(part) }
    }
}

/// The mistake in a dictionary that determines the status.
///
/// A dictionary has no order, so with several mistakes the status must not depend on the order of iteration. Names rank before types,
/// types before values; ties are broken by the key.
struct FirstFault {
    enum Rank: Int {
        case name, type, value
    }

    private var first: (rank: Rank, key: String, failure: KeychainFailure)?

    mutating func note(_ rank: Rank, _ key: String, _ status: KeychainStatus, _ problem: String) {
        if let first, (first.rank.rawValue, first.key) <= (rank.rawValue, key) { return }
        first = (rank, key, KeychainFailure(status, "\(Self.describe(key)) \(problem)"))
    }

    mutating func note(_ fault: ValueFault, _ key: String) {
        switch fault {
        case .type: note(.type, key, .parameter, "has a value of a type it does not take")
        case .value: note(.value, key, .parameter, "has a value that is not valid")
        }
    }

    func throwIfAny() throws(KeychainFailure) {
        if let first { throw first.failure }
    }

    /// Returns the key in a form for the log: one short line, even if the key is not.
    private static func describe(_ key: String) -> String {
        let name = key.prefix(40).debugDescription
        return Attribute(name: key).map { "\(name) (\($0))" } ?? name
    }
}
