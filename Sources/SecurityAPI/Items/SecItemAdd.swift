// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine

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
    unsafe addItem(attributes, CallerResult(result))
}

/// Adds an item described by a Foundation dictionary; see `SecItemAdd(_:_:)` for a Swift dictionary.
///
/// - Parameters:
///   - attributes: What to add. A key that is no string is `errSecParam`.
///   - result: Where the result goes. May be nil.
/// - Returns: The status.
@discardableResult
public func SecItemAdd(_ attributes: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    unsafe addItem(attributes, CallerResult(result))
}

private func addItem(_ attributes: some CallerDictionary, _ result: CallerResult) -> OSStatus {
    KeychainCall.run { () throws(KeychainFailure) in
        let dictionary = try ItemDictionary(attributes.stringKeyed())
        let item = try ProcessKeychain.current().add(try AddRequest(dictionary))
        var renderer = ItemRenderer(parts: dictionary.returns, verb: .add(callerNamedAccessControl: dictionary.accessControl != nil))
        result.deliver(renderer.render(item))
    }
}
