// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// The second dictionary of `SecItemUpdate` after parsing: the changes to the items.
struct ParsedUpdateDictionary {
    let itemClass: ItemClass
    private(set) var attributes = ItemAttributes()
    private(set) var accessibility: ItemAccessibility?
    private(set) var accessControl: SecAccessControl?
    private(set) var secret: Data?

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
