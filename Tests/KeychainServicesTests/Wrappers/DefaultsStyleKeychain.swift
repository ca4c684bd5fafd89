// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// Deliberately written in the style of such wrappers.

import Foundation
import KeychainServices

// Implicitly unwrapped constants with shorter names, as in wrappers that resemble UserDefaults.
private let SecMatchLimit: String! = kSecMatchLimit as String
private let SecReturnData: String! = kSecReturnData as String
private let SecReturnPersistentRef: String! = kSecReturnPersistentRef as String
private let SecReturnAttributes: String! = kSecReturnAttributes as String
private let SecValueData: String! = kSecValueData as String
private let SecAttrAccessible: String! = kSecAttrAccessible as String
private let SecClass: String! = kSecClass as String
private let SecAttrService: String! = kSecAttrService as String
private let SecAttrGeneric: String! = kSecAttrGeneric as String
private let SecAttrAccount: String! = kSecAttrAccount as String
private let SecAttrSynchronizable: String! = kSecAttrSynchronizable as String

/// A wrapper with the interface of UserDefaults: keys are stored as data, dictionaries are `[String: Any]`.
open class DefaultsStyleKeychain {
    public let serviceName: String

    public init(serviceName: String) {
        self.serviceName = serviceName
    }

    open func hasValue(forKey key: String) -> Bool {
        data(forKey: key) != nil
    }

    open func allKeys() -> Set<String> {
        let query: [String: Any] = [
            SecClass: kSecClassGenericPassword,
            SecAttrService: serviceName,
            SecReturnAttributes: kCFBooleanTrue!,
            SecMatchLimit: kSecMatchLimitAll,
        ]
        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        guard status == errSecSuccess else { return [] }

        var keys = Set<String>()
        if let results = result as? [[AnyHashable: Any]] {
            for attributes in results {
                if let account = attributes[kSecAttrAccount as String] as? Data,
                    let key = String(data: account, encoding: String.Encoding.utf8)
                {
                    keys.insert(key)
                }
            }
        }
        return keys
    }

    open func integer(forKey key: String) -> Int? {
        guard let data = data(forKey: key), let text = String(data: data, encoding: .utf8) else { return nil }
        return Int(text)
    }

    open func string(forKey key: String) -> String? {
        guard let data = data(forKey: key) else { return nil }
        return String(data: data, encoding: String.Encoding.utf8) as String?
    }

    open func data(forKey key: String) -> Data? {
        var query = setupQuery(forKey: key)
        query[SecMatchLimit] = kSecMatchLimitOne
        query[SecReturnData] = kCFBooleanTrue
        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        return status == noErr ? result as? Data : nil
    }

    open func dataRef(forKey key: String) -> Data? {
        var query = setupQuery(forKey: key)
        query[SecMatchLimit] = kSecMatchLimitOne
        query[SecReturnPersistentRef] = kCFBooleanTrue
        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        return status == noErr ? result as? Data : nil
    }

    open func accessibility(ofKey key: String) -> String? {
        var query = setupQuery(forKey: key)
        query.removeValue(forKey: SecAttrAccessible)
        query[SecMatchLimit] = kSecMatchLimitOne
        query[SecReturnAttributes] = kCFBooleanTrue
        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        guard status == noErr, let dictionary = result as? [String: AnyObject] else { return nil }
        return dictionary[SecAttrAccessible] as? String
    }

    @discardableResult open func set(_ value: String, forKey key: String) -> Bool {
        guard let data = value.data(using: .utf8) else { return false }
        return set(data, forKey: key)
    }

    @discardableResult open func set(_ value: Data, forKey key: String, isSynchronizable: Bool = false) -> Bool {
        var item: [String: Any] = setupQuery(forKey: key, isSynchronizable: isSynchronizable)
        item[SecValueData] = value
        item[SecAttrAccessible] = kSecAttrAccessibleWhenUnlocked
        let status: OSStatus = SecItemAdd(item as CFDictionary, nil)
        if status == errSecSuccess {
            return true
        } else if status == errSecDuplicateItem {
            return update(value, forKey: key, isSynchronizable: isSynchronizable)
        } else {
            return false
        }
    }

    @discardableResult open func removeObject(forKey key: String) -> Bool {
        SecItemDelete(setupQuery(forKey: key) as CFDictionary) == errSecSuccess
    }

    @discardableResult open func removeAllKeys() -> Bool {
        var query: [String: Any] = [SecClass: kSecClassGenericPassword]
        query[SecAttrService] = serviceName
        return SecItemDelete(query as CFDictionary) == errSecSuccess
    }

    private func update(_ value: Data, forKey key: String, isSynchronizable: Bool) -> Bool {
        let query: [String: Any] = setupQuery(forKey: key, isSynchronizable: isSynchronizable)
        return SecItemUpdate(query as CFDictionary, [SecValueData: value] as CFDictionary) == errSecSuccess
    }

    private func setupQuery(forKey key: String, isSynchronizable: Bool = false) -> [String: Any] {
        var query: [String: Any] = [SecClass: kSecClassGenericPassword]
        query[SecAttrService] = serviceName
        let encodedIdentifier: Data? = key.data(using: String.Encoding.utf8)
        query[SecAttrGeneric] = encodedIdentifier
        query[SecAttrAccount] = encodedIdentifier
        query[SecAttrSynchronizable] = isSynchronizable ? kCFBooleanTrue : kCFBooleanFalse
        return query
    }
}
