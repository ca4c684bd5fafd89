// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// Deliberately written in the style of such wrappers.

import Foundation
import KeychainServices

/// A wrapper that reads through `withUnsafeMutablePointer` and remembers the last status.
open class PointerStyleKeychain {
    open var lastResultCode: OSStatus = noErr
    open var accessGroup: String?
    open var synchronizable: Bool = false
    private let keyPrefix: String
    private let lock = NSLock()

    public init(keyPrefix: String) {
        self.keyPrefix = keyPrefix
    }

    @discardableResult
    open func set(_ value: String, forKey key: String, withAccess access: AccessOptions? = nil) -> Bool {
        if let value = value.data(using: String.Encoding.utf8) { return set(value, forKey: key, withAccess: access) }
        return false
    }

    @discardableResult
    open func set(_ value: Data, forKey key: String, withAccess access: AccessOptions? = nil) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        deleteNoLock(key)
        let accessible = access?.value ?? AccessOptions.defaultOption.value
        var query: [String: Any] = [
            Constants.klass: kSecClassGenericPassword,
            Constants.attrAccount: keyPrefix + key,
            Constants.valueData: value,
            Constants.accessible: accessible,
        ]
        query = addAccessGroupWhenPresent(query)
        query = addSynchronizableIfRequired(query, addingItems: true)
        lastResultCode = SecItemAdd(query as CFDictionary, nil)
        return lastResultCode == noErr
    }

    @discardableResult
    open func set(_ value: Bool, forKey key: String) -> Bool {
        set(Data([value ? 1 : 0]), forKey: key)
    }

    open func get(_ key: String) -> String? {
        guard let data = getData(key) else { return nil }
        guard let text = String(data: data, encoding: .utf8) else {
            lastResultCode = -67853
            return nil
        }
        return text
    }

    open func getBool(_ key: String) -> Bool? {
        guard let first = getData(key)?.first else { return nil }
        return first == 1
    }

    open func getData(_ key: String, asReference: Bool = false) -> Data? {
        lock.lock()
        defer { lock.unlock() }
        var query: [String: Any] = [
            Constants.klass: kSecClassGenericPassword,
            Constants.attrAccount: keyPrefix + key,
            Constants.matchLimit: kSecMatchLimitOne,
        ]
        if asReference {
            query[Constants.returnReference] = kCFBooleanTrue
        } else {
            query[Constants.returnData] = kCFBooleanTrue
        }
        query = addAccessGroupWhenPresent(query)
        query = addSynchronizableIfRequired(query, addingItems: false)
        var result: AnyObject?
        lastResultCode = withUnsafeMutablePointer(to: &result) {
            SecItemCopyMatching(query as CFDictionary, UnsafeMutablePointer($0))
        }
        return lastResultCode == noErr ? result as? Data : nil
    }

    @discardableResult
    open func delete(_ key: String) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return deleteNoLock(key)
    }

    public var allKeys: [String] {
        var query: [String: Any] = [
            Constants.klass: kSecClassGenericPassword,
            Constants.returnData: true,
            Constants.returnAttributes: true,
            Constants.returnReference: true,
            Constants.matchLimit: Constants.matchLimitAll,
        ]
        query = addAccessGroupWhenPresent(query)
        query = addSynchronizableIfRequired(query, addingItems: false)
        var result: AnyObject?
        let lastResultCode = withUnsafeMutablePointer(to: &result) {
            SecItemCopyMatching(query as CFDictionary, UnsafeMutablePointer($0))
        }
        if lastResultCode == noErr {
            return (result as? [[String: Any]])?.compactMap { $0[Constants.attrAccount] as? String } ?? []
        }
        return []
    }

    @discardableResult
    open func clear() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        var query: [String: Any] = [kSecClass as String: kSecClassGenericPassword]
        query = addAccessGroupWhenPresent(query)
        query = addSynchronizableIfRequired(query, addingItems: false)
        lastResultCode = SecItemDelete(query as CFDictionary)
        return lastResultCode == noErr
    }

    @discardableResult
    private func deleteNoLock(_ key: String) -> Bool {
        var query: [String: Any] = [
            Constants.klass: kSecClassGenericPassword,
            Constants.attrAccount: keyPrefix + key,
        ]
        query = addAccessGroupWhenPresent(query)
        query = addSynchronizableIfRequired(query, addingItems: false)
        lastResultCode = SecItemDelete(query as CFDictionary)
        return lastResultCode == noErr
    }

    private func addAccessGroupWhenPresent(_ items: [String: Any]) -> [String: Any] {
        guard let accessGroup = accessGroup else { return items }
        var result: [String: Any] = items
        result[Constants.accessGroup] = accessGroup
        return result
    }

    private func addSynchronizableIfRequired(_ items: [String: Any], addingItems: Bool) -> [String: Any] {
        if !synchronizable { return items }
        var result: [String: Any] = items
        result[Constants.attrSynchronizable] = addingItems == true ? true : kSecAttrSynchronizableAny
        return result
    }

    public enum AccessOptions {
        case accessibleWhenUnlocked
        case accessibleAfterFirstUnlockThisDeviceOnly

        static var defaultOption: AccessOptions { .accessibleWhenUnlocked }

        var value: String {
            switch self {
            case .accessibleWhenUnlocked: return toString(kSecAttrAccessibleWhenUnlocked)
            case .accessibleAfterFirstUnlockThisDeviceOnly: return toString(kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly)
            }
        }

        func toString(_ value: CFString) -> String { Constants.toString(value) }
    }

    private struct Constants {
        static var accessGroup: String { toString(kSecAttrAccessGroup) }
        static var accessible: String { toString(kSecAttrAccessible) }
        static var attrAccount: String { toString(kSecAttrAccount) }
        static var attrSynchronizable: String { toString(kSecAttrSynchronizable) }
        static var klass: String { toString(kSecClass) }
        static var matchLimit: String { toString(kSecMatchLimit) }
        static var matchLimitAll: String { toString(kSecMatchLimitAll) }
        static var returnData: String { toString(kSecReturnData) }
        static var returnAttributes: String { toString(kSecReturnAttributes) }
        static var returnReference: String { toString(kSecReturnPersistentRef) }
        static var valueData: String { toString(kSecValueData) }

        static func toString(_ value: CFString) -> String { value as String }
    }
}
