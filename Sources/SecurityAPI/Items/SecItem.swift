// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
package import KeychainCore
internal import KeychainEngine
internal import Logging

// The overloads for NSDictionary are disfavored, so that a function name without arguments (`let add = SecItemAdd`) is not ambiguous.

/// Adds an item.
///
/// - Parameters:
///   - attributes: The item: the class, the attributes, the secret in `kSecValueData`, and the requested results. The access group must
///     be one of the program's entitlements; by default it is the program's first.
///   - result: Receives what the `kSecReturn…` keys request, or nil if none is true. May be nil.
/// - Returns: `errSecSuccess`, after the item was written durably; `errSecDuplicateItem` if an item with the same primary key exists;
///   `errSecParam`, `errSecNoSuchAttr` or `errSecNoSuchClass` if the dictionary is not valid; `errSecMissingEntitlement` for an access
///   group that the entitlements do not list; `errSecInteractionNotAllowed` while the protection class is locked; `errSecAuthFailed` for
///   access control that cannot be satisfied (biometry without an alternative, or user presence while no passcode is set) and for an
///   invalidated `LAContext`; `errSecUnimplemented` for certificates, keys and identities; `errSecNotAvailable` if the keychain cannot be
///   used. The user is prompted only for an application password that the access control requires and the `LAContext` does not contain.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe addItem(attributes, ResultPointer(result))
}

/// Adds an item described by a Foundation dictionary; see `SecItemAdd(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - attributes: The item. For a key that is not a string the status is `errSecParam`.
///   - result: Receives the result. May be nil.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemAdd(_ attributes: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe addItem(attributes, ResultPointer(result))
}

private func addItem(_ attributes: some StringKeyedDictionary, _ result: ResultPointer) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ParsedItemDictionary(attributes.stringKeyed())
        let item = try DefaultKeychain.current().add(try AddRequest(dictionary))
        let renderer = ItemRenderer(parts: dictionary.returns, verb: .add(callerNamedAccessControl: dictionary.accessControl != nil))
        result.deliver(renderer.render(item))
    }
}

/// Finds items.
///
/// - Parameters:
///   - query: The items to find: the class, attributes that must be equal, or a persistent reference; the limit (`kSecMatchLimit`, one by
///     default), and the requested results. Without an access group the search includes all groups of the program; without
///     `kSecAttrSynchronizable` it includes local items only.
///   - result: Receives the result, an array if the limit is not one, or nil if no `kSecReturn…` key is true. May be nil.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecInteractionNotAllowed` if an item matches and its
///   protection class is locked; `errSecParam`, `errSecNoSuchAttr` or `errSecNoSuchClass` if the query is not valid;
///   `errSecMissingEntitlement` for an access group that the entitlements do not list; `errSecDecode` if all matching items are damaged;
///   `errSecUnimplemented` for certificates, keys and identities; `errSecNotAvailable` if the keychain cannot be used. If an item with
///   access control matches and the `LAContext` does not satisfy it yet, the user is prompted: `errSecUserCanceled` if the user cancels,
///   `errSecAuthFailed` after three wrong answers and for an invalidated `LAContext`, `errSecInteractionNotAllowed` if prompts are
///   forbidden or cannot be shown.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe copyMatchingItems(query, ResultPointer(result))
}

/// Finds items by a query in a Foundation dictionary; see `SecItemCopyMatching(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - query: The items to find. For a key that is not a string the status is `errSecParam`.
///   - result: Receives the result. May be nil.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemCopyMatching(_ query: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe copyMatchingItems(query, ResultPointer(result))
}

private func copyMatchingItems(_ query: some StringKeyedDictionary, _ result: ResultPointer) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ParsedItemDictionary(query.stringKeyed())
        let items = try DefaultKeychain.current().copyMatching(try MatchRequest(dictionary))
        let renderer = ItemRenderer(parts: dictionary.returns, verb: .copyMatching)
        switch dictionary.limit {
        case .one: result.deliver(items.first.flatMap(renderer.render))
        case .count, .all: result.deliver(items, renderedBy: renderer)
        }
    }
}

/// Updates all items that match, atomically.
///
/// - Parameters:
///   - query: The items to update, as for `SecItemCopyMatching(_:_:)`, without a `kSecMatch…` key and without a `kSecReturn…` key that is
///     true.
///   - attributesToUpdate: The new values of attributes, and the new secret in `kSecValueData`.
/// - Returns: `errSecSuccess`, after the change was written durably; `errSecItemNotFound` if no item matches; `errSecDuplicateItem` if an
///   item would have the primary key of another; `errSecNoSuchAttr` for a key that an update cannot change; `errSecParam`,
///   `errSecNoSuchClass`, `errSecMissingEntitlement`, `errSecInteractionNotAllowed`, `errSecUserCanceled`, `errSecAuthFailed`,
///   `errSecDecode`, `errSecUnimplemented` and `errSecNotAvailable` as for the other functions.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Updates items by two Foundation dictionaries; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: The items to update. For a key that is not a string the status is `errSecParam`.
///   - attributesToUpdate: The new values. For a key that is not a string the status is `errSecParam`.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemUpdate(_ query: NSDictionary, _ attributesToUpdate: NSDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Updates items by a query in a Foundation dictionary; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: The items to update. For a key that is not a string the status is `errSecParam`.
///   - attributesToUpdate: The new values.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemUpdate(_ query: NSDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

/// Updates items by changes in a Foundation dictionary; see `SecItemUpdate(_:_:)` for Swift dictionaries.
///
/// - Parameters:
///   - query: The items to update.
///   - attributesToUpdate: The new values. For a key that is not a string the status is `errSecParam`.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: NSDictionary) -> OSStatus {
    updateItems(query, attributesToUpdate)
}

private func updateItems(_ query: some StringKeyedDictionary, _ attributesToUpdate: some StringKeyedDictionary) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let dictionary = try ParsedItemDictionary(query.stringKeyed())
        let changes = try ParsedUpdateDictionary(attributesToUpdate.stringKeyed(), of: dictionary.itemClass)
        let request = try UpdateRequest(dictionary, changes: changes)
        try DefaultKeychain.current().update(request)
    }
}

/// Deletes all items that match, atomically, without prompting the user.
///
/// - Parameter query: The items to delete, as for `SecItemCopyMatching(_:_:)`, without a `kSecMatch…` key.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecParam`, `errSecNoSuchAttr`, `errSecNoSuchClass`,
///   `errSecMissingEntitlement`, `errSecUnimplemented` and `errSecNotAvailable` as for the other functions.
@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    deleteItems(query)
}

/// Deletes items by a query in a Foundation dictionary; see `SecItemDelete(_:)` for a Swift dictionary.
///
/// - Parameter query: The items to delete. For a key that is not a string the status is `errSecParam`.
/// - Returns: The status.
@discardableResult @_disfavoredOverload
public func SecItemDelete(_ query: NSDictionary) -> OSStatus {
    deleteItems(query)
}

private func deleteItems(_ query: some StringKeyedDictionary) -> OSStatus {
    SecItemCall.run { () throws(KeychainFailure) in
        let request = try DeleteRequest(try ParsedItemDictionary(query.stringKeyed()))
        try DefaultKeychain.current().delete(request)
    }
}

/// Runs one SecItem call: converts a failure to its status, and reports it to the observer or logs it.
enum SecItemCall {
    private static let logger = Logger(label: "keychain")

    static func run(_ body: () throws(KeychainFailure) -> Void) -> OSStatus {
        // The first statement, without the observer and the log: they have locks that another thread may have held at the fork.
        guard ForkDetection.beginUse() else { return errSecNotAvailable }
        var failure: KeychainFailure?
        do throws(KeychainFailure) {
            try body()
        } catch {
            failure = error
        }
        report(failure)
        return failure?.status.rawValue ?? errSecSuccess
    }

    fileprivate static func report(_ failure: KeychainFailure?) {
        CurrentKeychain.listener?(failure)
        if let observer = CurrentKeychain.observer {
            observer(failure)
        } else if let failure {
            // The caller has the status. A command-line tool that sets up no log prints nothing.
            logger.debug("\(failure)")
        }
    }
}

/// Reports a failure that a library concludes from the results of several calls, as that of the last call.
package func reportFailure(_ failure: KeychainFailure) {
    SecItemCall.report(failure)
}

/// Runs `body`, whose SecItem calls are parts of one transaction, and commits it if `body` returns true.
///
/// `body` may run again after a rollback, and must be short: other processes cannot write meanwhile. Its calls do not prompt the user. The
/// status is not success if the transaction could not begin or was not written. Returns nil if the keychain in use has no transactions.
package func performTransaction(_ body: () -> Bool) -> (isCommitted: Bool, status: OSStatus)? {
    guard ForkDetection.beginUse(), let keychain = (try? DefaultKeychain.current()) as? any TransactionalKeychain else { return nil }
    do throws(KeychainFailure) {
        return (try keychain.transaction { part in CurrentKeychain.with(part, body) }, errSecSuccess)
    } catch {
        // keychaind keeps the keychain.
        if error.status == .unimplemented { return nil }
        return (false, SecItemCall.run { () throws(KeychainFailure) in throw error })
    }
}

/// Calls `onChange` soon after any process has changed the keychain in use, until the observation is canceled.
///
/// See `ObservableKeychain`. Returns nil, and logs the reason, if the keychain cannot be observed.
package func observeKeychainChanges(_ onChange: @escaping @Sendable () -> Void) -> (any ChangeObservation)? {
    var observation: (any ChangeObservation)?
    _ = SecItemCall.run { () throws(KeychainFailure) in
        guard let keychain = try DefaultKeychain.current() as? any ObservableKeychain else {
            throw KeychainFailure(.unimplemented, "the changes of this keychain cannot be observed")
        }
        observation = try keychain.observeChanges(onChange)
    }
    return observation
}

/// Whether this process was forked, without exec, from one that uses the keychain.
///
/// For modules with locks of their own.
package var isForkedChild: Bool { ForkDetection.isForkedChild }

/// A dictionary argument of a SecItem function.
protocol StringKeyedDictionary {
    /// Returns the dictionary with its keys as strings, and throws if a key is not a string.
    func stringKeyed() throws(KeychainFailure) -> [String: Any]
}

extension [String: Any]: StringKeyedDictionary {
    func stringKeyed() -> [String: Any] { self }
}

extension NSDictionary: StringKeyedDictionary {
    /// Converts key by key, because Foundation's cast of a subclass's dictionary finds no entries.
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
