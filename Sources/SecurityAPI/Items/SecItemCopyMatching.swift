// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine

/// Finds items.
///
/// - Parameters:
///   - query: Which items: the class, attributes that must be equal, or a persistent reference; how many (`kSecMatchLimit`, one by
///     default), and which results to deliver. Without an access group all groups of the program are searched; without
///     `kSecAttrSynchronizable` only local items are.
///   - result: Where the result goes, nil if no `kSecReturn…` key is true; an array if the limit is not one. May be nil.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if there is proof that there is no such item; `errSecInteractionNotAllowed` if an item
///   matches and its protection class is locked; `errSecParam`, `errSecNoSuchAttr` or `errSecNoSuchClass` if the query is not valid;
///   `errSecMissingEntitlement` for an access group of others; `errSecDecode` if the one item asked for is damaged;
///   where an item with access control matches, and nobody has satisfied it yet, a person is asked: `errSecUserCanceled` if they cancel,
///   `errSecAuthFailed` after three wrong answers and for an invalidated `LAContext`, `errSecInteractionNotAllowed` if nobody may or can
///   be asked;
///   `errSecUnimplemented` for certificates, keys and identities; `errSecNotAvailable` if the keychain cannot be used.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe copyMatchingItems(query, CallerResult(result))
}

/// Finds items by a query in a Foundation dictionary; see `SecItemCopyMatching(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - query: Which items. A key that is no string is `errSecParam`.
///   - result: Where the result goes. May be nil.
/// - Returns: The status.
@discardableResult
public func SecItemCopyMatching(_ query: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe copyMatchingItems(query, CallerResult(result))
}

private func copyMatchingItems(_ query: some CallerDictionary, _ result: CallerResult) -> OSStatus {
    KeychainCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(query.stringKeyed())
        let items = try ProcessKeychain.current().copyMatching(try MatchRequest(dictionary))
        var renderer = ItemRenderer(parts: dictionary.returns, verb: .copyMatching)
        switch dictionary.limit {
        case .one: result.deliver(items.first.flatMap { renderer.render($0) })
        case .count, .all: result.deliver(all: renderer.render(items))
        }
    }
}
