// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Every call of Keychain Services that this module makes.
///
/// The calls differ between platforms in what they coerce, so they are kept together and take nothing but dictionaries with String keys.
enum SecItem {
    /// What performs the requests of types that give no closure of their own.
    // The pointers are used during the call only.
    static let add: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { unsafe SecItemAdd($0, &$1) }
    static let copyMatching: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { unsafe SecItemCopyMatching($0, &$1) }
    static let delete: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { request, _ in SecItemDelete(request) }
    static let update: @Sendable (CFDictionary, CFDictionary) -> OSStatus = { query, attributes in SecItemUpdate(query, attributes) }

    /// Performs a request that changes an item.
    static func change(
        _ query: [String: Any], to attributes: [String: Any], with closure: PerformUpdateRequestClosureType
    ) -> OSStatus {
        closure(query as CFDictionary, attributes as CFDictionary)
    }

    /// Performs a request that delivers nothing.
    static func perform(_ request: [String: Any], with closure: PerformRequestClosureType) -> OSStatus {
        var result: AnyObject?
        return closure(request as CFDictionary, &result)
    }

    /// Performs a request for the attributes and the value of one item.
    static func attributes(matching request: [String: Any], with closure: PerformRequestClosureType) -> (OSStatus, [String: Any]?) {
        var result: AnyObject?
        let status = closure(request as CFDictionary, &result)
        return (status, result as? [String: Any])
    }

    /// Performs a request for the attributes of all items that match.
    static func allAttributes(matching request: [String: Any]) -> (OSStatus, [[String: Any]]?) {
        var result: AnyObject?
        let status = copyMatching(request as CFDictionary, &result)
        return (status, result as? [[String: Any]])
    }
}
