// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

/// The meaning of a key in a caller's dictionary.
///
/// This type has the names of all keys.
enum DictionaryKey {
    case itemClass
    case attribute(Attribute)
    case accessControl
    /// The sharing group. No program on this platform has the required entitlement.
    case sharingGroup
    /// Additional encrypted fields of internet passwords. No program on this platform has the required entitlement.
    case restrictedInternetAttribute
    /// An attribute that belongs to the keychain itself.
    case internalAttribute
    case match(Match)
    case returns(ResultParts)
    case secret
    case persistentReference
    case authenticationUI
    /// The older form of `authenticationUI`.
    case noAuthenticationUI
    case operationPrompt
    case authenticationContext
    case leavesTombstones
    /// Accepted, without effect.
    case ignored
    /// A name of four letters that is not an attribute of passwords.
    case unknownAttribute
    case unknown

    /// A key that narrows or limits a search.
    enum Match {
        case limit
        case hostOrSubdomain
        case failsIfUnreadable
        /// A key that only certificates and identities support.
        case certificateOnly
        /// Accepted in a search, without effect.
        case ignored
    }

    init(_ name: String) {
        self = Self.byName[name] ?? Self.unlisted(name)
    }

    /// Returns the meaning of an unknown name, which in Apple's keychain depends on its length and first letter.
    private static func unlisted(_ name: String) -> DictionaryKey {
        if name.utf16.count == 4 { return .unknownAttribute }
        guard name.utf16.count > 1 else { return .unknown }
        if name.hasPrefix("m") { return .match(.ignored) }
        // A prefix for callbacks, which have no effect on passwords.
        return name.hasPrefix("f_") ? .ignored : .unknown
    }

    private static let byName: [String: DictionaryKey] = {
        let attributes = Attribute.allCases.map { ($0.name, DictionaryKey.attribute($0)) }
        return others.merging(attributes) { other, _ in other }
    }()

    private static let others: [String: DictionaryKey] = [
        kSecClass: .itemClass,
        kSecAttrAccessControl: .accessControl,
        "ggrp": .sharingGroup,
        "clip": .internalAttribute,
        "binn": .restrictedInternetAttribute,
        "bini": .restrictedInternetAttribute,
        "bin0": .restrictedInternetAttribute,
        "bin1": .restrictedInternetAttribute,
        "bin2": .restrictedInternetAttribute,
        "bin3": .restrictedInternetAttribute,
        kSecUseDataProtectionKeychain: .ignored,
        kSecMatchLimit: .match(.limit),
        kSecMatchHostOrSubdomainOfHost: .match(.hostOrSubdomain),
        kSecMatchFailsIfUnreadable: .match(.failsIfUnreadable),
        kSecMatchPolicy: .match(.certificateOnly),
        kSecMatchIssuers: .match(.certificateOnly),
        kSecReturnData: .returns(.data),
        kSecReturnAttributes: .returns(.attributes),
        kSecReturnRef: .returns(.reference),
        kSecReturnPersistentRef: .returns(.persistentReference),
        kSecValueData: .secret,
        kSecValuePersistentRef: .persistentReference,
        kSecUseAuthenticationUI: .authenticationUI,
        kSecUseNoAuthenticationUI: .noAuthenticationUI,
        kSecUseOperationPrompt: .operationPrompt,
        kSecUseAuthenticationContext: .authenticationContext,
        "u_Tomb": .leavesTombstones,
        "u_CallerName": .ignored,
        "u_TokenRawItems": .ignored,
        kSecUseUserIndependentKeychain: .ignored,
    ]
}
