// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// Deliberately written in the style of such wrappers.

import Foundation
import KeychainServices

/// A wrapper ported from Objective-C: mutable Foundation dictionaries, `NSError`, class methods.
public final class FoundationStyleKeychain: NSObject {
    public static let errorDomain = "FoundationStyleKeychain"

    public var service: NSString?
    public var account: NSString?
    public var label: NSString?
    public var passwordData: NSData?

    public class func password(forService service: String, account: String) throws -> String? {
        let query = FoundationStyleKeychain()
        query.service = NSString(string: service)
        query.account = NSString(string: account)
        try query.fetch()
        return query.password
    }

    public class func setPassword(_ password: String, forService service: String, account: String) throws {
        let query = FoundationStyleKeychain()
        query.service = NSString(string: service)
        query.account = NSString(string: account)
        query.password = password
        try query.save()
    }

    public class func deletePassword(forService service: String, account: String) throws {
        let query = FoundationStyleKeychain()
        query.service = NSString(string: service)
        query.account = NSString(string: account)
        try query.deleteItem()
    }

    public class func accounts(forService service: String) throws -> NSArray {
        let query = FoundationStyleKeychain()
        query.service = NSString(string: service)
        return try query.fetchAll()
    }

    public var password: String? {
        get { passwordData.flatMap { String(data: Data(referencing: $0), encoding: .utf8) } }
        set { passwordData = newValue.map { NSData(data: Data($0.utf8)) } }
    }

    public func save() throws {
        guard service != nil, account != nil, passwordData != nil else { throw Self.error(code: errSecParam) }
        var status: OSStatus
        let searchQuery = query()
        status = SecItemCopyMatching(searchQuery, nil)
        if status == errSecSuccess {
            let changes = NSMutableDictionary()
            changes.setObject(passwordData!, forKey: kSecValueData as NSString)
            status = SecItemUpdate(searchQuery, changes)
        } else if status == errSecItemNotFound {
            let attributes = query()
            if let label = label { attributes.setObject(label, forKey: kSecAttrLabel as NSString) }
            attributes.setObject(passwordData!, forKey: kSecValueData as NSString)
            attributes.setObject(kSecAttrAccessibleAfterFirstUnlock, forKey: kSecAttrAccessible as NSString)
            status = SecItemAdd(attributes, nil)
        }
        if status != errSecSuccess { throw Self.error(code: status) }
    }

    public func deleteItem() throws {
        let status = SecItemDelete(query())
        if status != errSecSuccess { throw Self.error(code: status) }
    }

    public func fetchAll() throws -> NSArray {
        let attributes = query()
        attributes.setObject(kCFBooleanTrue!, forKey: kSecReturnAttributes as NSString)
        attributes.setObject(kSecMatchLimitAll, forKey: kSecMatchLimit as NSString)
        var result: CFTypeRef?
        let status = SecItemCopyMatching(attributes, &result)
        if status != errSecSuccess { throw Self.error(code: status) }
        return result as! NSArray
    }

    public func fetch() throws {
        guard service != nil, account != nil else { throw Self.error(code: errSecParam) }
        let attributes = query()
        attributes.setObject(NSNumber(value: true), forKey: kSecReturnData as NSString)
        attributes.setObject(kSecMatchLimitOne, forKey: kSecMatchLimit as NSString)
        var result: CFTypeRef?
        let status = SecItemCopyMatching(attributes, &result)
        if status != errSecSuccess { throw Self.error(code: status) }
        passwordData = result as? NSData
    }

    private func query() -> NSMutableDictionary {
        let dictionary = NSMutableDictionary(capacity: 3)
        dictionary.setObject(kSecClassGenericPassword, forKey: kSecClass as NSString)
        if let service = service { dictionary.setObject(service, forKey: kSecAttrService as NSString) }
        if let account = account { dictionary.setObject(account, forKey: kSecAttrAccount as NSString) }
        return dictionary
    }

    private class func error(code: OSStatus) -> NSError {
        var userInfo = [String: Any]()
        if let message = SecCopyErrorMessageString(code, nil) as String? { userInfo[NSLocalizedDescriptionKey] = message }
        return NSError(domain: errorDomain, code: Int(code), userInfo: userInfo)
    }
}
