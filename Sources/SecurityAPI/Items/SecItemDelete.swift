// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine

/// Deletes every item that matches, all of them or none.
///
/// - Parameter query: Which items, as for `SecItemCopyMatching(_:_:)`, without a `kSecMatch…` key: there is no limit.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecParam`, `errSecNoSuchAttr`, `errSecNoSuchClass`,
///   `errSecMissingEntitlement`, `errSecUnimplemented` and `errSecNotAvailable` as for the other functions. Nobody is asked, whatever the
///   access control of the items.
@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    deleteItems(query)
}

/// Deletes items by a query in a Foundation dictionary; see `SecItemDelete(_:)` for a Swift dictionary.
///
/// - Parameter query: Which items. A key that is no string is `errSecParam`.
/// - Returns: The status.
@discardableResult
public func SecItemDelete(_ query: NSDictionary) -> OSStatus {
    deleteItems(query)
}

private func deleteItems(_ query: some CallerDictionary) -> OSStatus {
    KeychainCall.run { () throws(KeychainFailure) in
        let request = try DeleteRequest(try ItemDictionary(query.stringKeyed()))
        try ProcessKeychain.current().delete(request)
    }
}
