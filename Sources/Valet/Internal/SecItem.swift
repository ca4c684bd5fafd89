// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Every call of Keychain Services that this module makes.
///
/// The calls differ between platforms in what they coerce, so they are kept together and take nothing but
/// dictionaries with String keys.
enum SecItem {
    /// Whether something matches: `errSecSuccess`, `errSecItemNotFound`, or why that cannot be said.
    static func look(for query: [String: Any]) -> OSStatus {
        SecItemCopyMatching(query as CFDictionary, nil)
    }

    /// The value of the one item that `query`, which asks for data, matches.
    ///
    /// Success with nil: the item has no value.
    static func copyData(matching query: [String: Any]) -> (OSStatus, Data?) {
        let (status, result) = copy(matching: query)
        guard let value = result as? NSData else { return (status, nil) }
        // `as? Data` would do, but Foundation for Linux casts byte by byte: 50 ms for a mebibyte. The bytes are valid as long
        // as `value` lives.
        return (status, withExtendedLifetime(value) { unsafe Data(bytes: value.bytes, count: value.length) })
    }

    /// The one item that `query`, which asks for attributes, matches.
    static func copyAttributes(matching query: [String: Any]) -> (OSStatus, [String: Any]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [String: Any])
    }

    /// All items that `query`, which asks for attributes and sets a limit other than one, matches.
    static func copyAllAttributes(matching query: [String: Any]) -> (OSStatus, [[String: Any]]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [[String: Any]])
    }

    static func add(_ attributes: [String: Any]) -> OSStatus {
        SecItemAdd(attributes as CFDictionary, nil)
    }

    /// Adds an item; `attributes` asks for the attributes it then has.
    static func addReturningAttributes(_ attributes: [String: Any]) -> (OSStatus, [String: Any]?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemAdd(attributes as CFDictionary, &result)
        return (status, result as? [String: Any])
    }

    static func update(_ query: [String: Any], to attributes: [String: Any]) -> OSStatus {
        SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
    }

    static func delete(_ query: [String: Any]) -> OSStatus {
        SecItemDelete(query as CFDictionary)
    }

    /// The access control of items in the class that needs a passcode; nil if the system makes none.
    static func accessControl(_ flags: SecAccessControlCreateFlags) -> SecAccessControl? {
        SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, flags, nil)
    }

    private static func copy(matching query: [String: Any]) -> (OSStatus, CFTypeRef?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        return (status, result)
    }
}
