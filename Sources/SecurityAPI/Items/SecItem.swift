// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine
internal import Logging

/// Adds an item.
///
/// - Parameters:
///   - attributes: What to add: the class, the attributes, the secret in `kSecValueData`, and which results to deliver. The access group
///     must be one the program has; without one the item goes into the program's first.
///   - result: Where the result goes: what the `kSecReturn…` keys ask for, nil if none is true. May be nil.
/// - Returns: `errSecSuccess`; `errSecDuplicateItem` if there is one with the same primary key; `errSecParam`, `errSecNoSuchAttr` or
///   `errSecNoSuchClass` if the dictionary is not valid; `errSecMissingEntitlement` for an access group of others;
///   `errSecInteractionNotAllowed` while the protection class is locked; `errSecAuthFailed` for access control that nobody could satisfy
///   here (biometry without an alternative, the person's presence while no passcode is set) and for an invalidated `LAContext`;
///   `errSecUnimplemented` for certificates, keys and identities; `errSecNotAvailable` if the keychain cannot be used. Nobody is asked
///   but for the program's own password, where the access control has one and the `LAContext` has not. The item is durable when the
///   call succeeds.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe addItem(attributes, ResultPointer(result))
}

/// Adds an item described by a Foundation dictionary; see `SecItemAdd(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - attributes: What to add. A key that is no string is `errSecParam`.
///   - result: Where the result goes. May be nil.
/// - Returns: The status.
@discardableResult
public func SecItemAdd(_ attributes: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe addItem(attributes, ResultPointer(result))
}

private func addItem(_ attributes: some StringKeyedDictionary, _ result: ResultPointer) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(attributes.stringKeyed())
        let item = try DefaultKeychain.current().add(try AddRequest(dictionary))
        var renderer = ItemRenderer(parts: dictionary.returns, verb: .add(callerNamedAccessControl: dictionary.accessControl != nil))
        result.deliver(renderer.render(item))
    }
}

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
    unsafe copyMatchingItems(query, ResultPointer(result))
}

/// Finds items by a query in a Foundation dictionary; see `SecItemCopyMatching(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - query: Which items. A key that is no string is `errSecParam`.
///   - result: Where the result goes. May be nil.
/// - Returns: The status.
@discardableResult
public func SecItemCopyMatching(_ query: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe copyMatchingItems(query, ResultPointer(result))
}

private func copyMatchingItems(_ query: some StringKeyedDictionary, _ result: ResultPointer) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(query.stringKeyed())
        let items = try DefaultKeychain.current().copyMatching(try MatchRequest(dictionary))
        var renderer = ItemRenderer(parts: dictionary.returns, verb: .copyMatching)
        switch dictionary.limit {
        case .one: result.deliver(items.first.flatMap { renderer.render($0) })
        case .count, .all: result.deliver(all: renderer.render(items))
        }
    }
}

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

private func updateItems(_ query: some StringKeyedDictionary, _ attributesToUpdate: some StringKeyedDictionary) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(query.stringKeyed())
        let changes = try UpdateDictionary(attributesToUpdate.stringKeyed(), of: dictionary.itemClass)
        let request = try UpdateRequest(dictionary, changes: changes)
        try DefaultKeychain.current().update(request)
    }
}

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

private func deleteItems(_ query: some StringKeyedDictionary) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let request = try DeleteRequest(try ItemDictionary(query.stringKeyed()))
        try DefaultKeychain.current().delete(request)
    }
}

/// Runs one SecItem call: converts a failure to its status, and reports it to the observer or logs it.
enum SecItemCall {
    private static let logger = Logger(label: "keychain")

    static func run(_ body: () throws(KeychainFailure) -> Void) -> OSStatus {
        var failure: KeychainFailure?
        do throws(KeychainFailure) {
            try body()
        } catch {
            failure = error
        }
        if let observer = CurrentKeychain.observer {
            observer(failure)
        } else if let failure {
            log(failure)
        }
        return failure?.status.rawValue ?? errSecSuccess
    }

    /// The answers every program expects at times are not worth a line; a mistake in the call, or a keychain that cannot be used, is.
    private static func log(_ failure: KeychainFailure) {
        switch failure.status {
        case .itemNotFound, .duplicateItem, .userCanceled: logger.debug("\(failure)")
        case .parameter, .noSuchAttribute, .noSuchClass, .missingEntitlement, .restrictedAPI, .unimplemented: logger.error("\(failure)")
        default: logger.warning("\(failure)")
        }
    }
}

/// A dictionary as a caller may hand one in.
protocol StringKeyedDictionary {
    /// The dictionary with its keys as strings; other keys mean nothing to a keychain.
    func stringKeyed() throws(KeychainFailure) -> [String: Any]
}

extension [String: Any]: StringKeyedDictionary {
    func stringKeyed() -> [String: Any] { self }
}

extension NSDictionary: StringKeyedDictionary {
    /// Key by key, because Foundation's cast sees nothing in a dictionary of a class that somebody derived.
    func stringKeyed() throws(KeychainFailure) -> [String: Any] {
        var dictionary: [String: Any] = [:]
        dictionary.reserveCapacity(count)
        for (key, value) in self {
            guard let name = key as? String else { throw KeychainFailure(.parameter, "a key of the dictionary is not a string") }
            dictionary[name] = value
        }
        return dictionary
    }
}
