// SPDX-License-Identifier: Apache-2.0
internal import Foundation

@testable internal import KeychainCore
@testable internal import SecurityAPI

/// The contents of a parsed dictionary, for comparison and for conversion to a dictionary.
struct SecItemFields: Equatable {
    private let itemClass: ItemClass
    private let attributes: ItemAttributes
    private let accessibility: ItemAccessibility?
    private let accessControl: SecAccessControl?
    private let synchronizable: ParsedItemDictionary.Synchronizable?
    private let tombstone: Bool?
    private let secret: Data?
    private let reference: Data?
    private let returns: UInt8
    private let limit: ParsedItemDictionary.Limit
    private let hostOrSubdomain: String?
    private let hasMatchKeys: Bool
    private let certificateOnlyMatchKey: String?
    private let interaction: Authentication.Interaction
    private let prompt: String?
    private let leavesTombstone: Bool?

    init(_ dictionary: ParsedItemDictionary) {
        itemClass = dictionary.itemClass
        attributes = dictionary.attributes
        accessibility = dictionary.accessibility
        accessControl = dictionary.accessControl
        synchronizable = dictionary.synchronizable
        tombstone = dictionary.tombstone
        secret = dictionary.secret
        reference =
            switch dictionary.reference {
            case .current(let reference): reference.data
            case .legacy: Data(dictionary.itemClass.rawValue.utf8) + Data(count: 8)
            case nil: nil
            }
        returns = dictionary.returns.rawValue
        limit = dictionary.limit
        hostOrSubdomain = dictionary.hostOrSubdomain
        hasMatchKeys = dictionary.hasMatchKeys
        certificateOnlyMatchKey = dictionary.certificateOnlyMatchKey
        interaction = dictionary.authentication.interaction
        prompt = dictionary.authentication.prompt
        leavesTombstone = dictionary.leavesTombstone
    }

    /// The same as a caller would write it.
    var dictionary: [String: Any] {
        var dictionary: [String: Any] = [kSecClass: itemClass.rawValue]
        for entry in attributes.entries { dictionary[entry.attribute.name] = Self.value(entry.value) }
        dictionary[kSecAttrAccessible] = accessibility?.rawValue
        dictionary[kSecAttrAccessControl] = accessControl
        switch synchronizable {
        case .yes: dictionary[kSecAttrSynchronizable] = true
        case .no: dictionary[kSecAttrSynchronizable] = false
        case .any: dictionary[kSecAttrSynchronizable] = kSecAttrSynchronizableAny
        case nil: break
        }
        dictionary[Attribute.tombstone.name] = tombstone
        dictionary[kSecValueData] = secret
        dictionary[kSecValuePersistentRef] = reference
        let parts: [(ResultParts, String)] = [
            (.data, kSecReturnData), (.attributes, kSecReturnAttributes), (.reference, kSecReturnRef),
            (.persistentReference, kSecReturnPersistentRef),
        ]
        for (part, key) in parts where ResultParts(rawValue: returns).contains(part) { dictionary[key] = true }
        switch limit {
        case .one: if hasMatchKeys { dictionary[kSecMatchLimit] = kSecMatchLimitOne }
        case .count(let count): dictionary[kSecMatchLimit] = count
        case .all: dictionary[kSecMatchLimit] = kSecMatchLimitAll
        }
        dictionary[kSecMatchHostOrSubdomainOfHost] = hostOrSubdomain
        if let certificateOnlyMatchKey { dictionary[certificateOnlyMatchKey] = true }
        switch interaction {
        case .allowed: break
        case .forbidden: dictionary[kSecUseAuthenticationUI] = kSecUseAuthenticationUIFail
        case .skippingItems: dictionary[kSecUseAuthenticationUI] = kSecUseAuthenticationUISkip
        }
        dictionary[kSecUseOperationPrompt] = prompt
        dictionary["u_Tomb"] = leavesTombstone
        return dictionary
    }

    private static func value(_ value: AttributeValue) -> Any {
        switch value {
        case .string(let text): text
        case .data(let data): data
        case .number(let number): NSNumber(value: number)
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        }
    }
}
