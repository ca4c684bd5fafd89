// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine

/// Changes every item that matches, all of them or none.
///
/// - Parameters:
///   - query: Which items, as for `SecItemCopyMatching(_:_:)`, without a `kSecMatch…` key and without a `kSecReturn…` key that is true.
///   - attributesToUpdate: The new values of attributes, and the new secret in `kSecValueData`.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecDuplicateItem` if an item would get the primary key of
///   another; `errSecNoSuchAttr` for a key that an update cannot change; `errSecParam`, `errSecNoSuchClass`, `errSecMissingEntitlement`,
///   `errSecInteractionNotAllowed`, `errSecUserCanceled`, `errSecAuthFailed`, `errSecDecode`, `errSecUnimplemented` and
///   `errSecNotAvailable` as for the other functions. The change is durable when the call succeeds.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Changes items by dictionaries of Foundation; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: Which items. A key that is no string is `errSecParam`.
///   - attributesToUpdate: The new values. A key that is no string is `errSecParam`.
/// - Returns: The status.
@discardableResult
public func SecItemUpdate(_ query: NSDictionary, _ attributesToUpdate: NSDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Changes items by a query of Foundation; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: Which items. A key that is no string is `errSecParam`.
///   - attributesToUpdate: The new values.
/// - Returns: The status.
@discardableResult
public func SecItemUpdate(_ query: NSDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Changes items by changes of Foundation; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: Which items.
///   - attributesToUpdate: The new values. A key that is no string is `errSecParam`.
/// - Returns: The status.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: NSDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

private func updateItems(_ query: some CallerDictionary, _ attributesToUpdate: some CallerDictionary) -> OSStatus {
    KeychainCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(query.stringKeyed())
        let changes = try UpdateDictionary(attributesToUpdate.stringKeyed(), of: dictionary.itemClass)
        let request = try UpdateRequest(dictionary, changes: changes)
        try ProcessKeychain.current().update(request)
    }
}
