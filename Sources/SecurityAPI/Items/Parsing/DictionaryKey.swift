// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

/// What a key of a caller's dictionary means.
///
/// The names of all keys stand here and nowhere else.
enum DictionaryKey {
    case itemClass
    case attribute(Attribute)
    case accessControl
    /// The sharing group: nobody here has the entitlement it needs.
    case sharingGroup
    /// Further encrypted fields of internet passwords: nobody here has the entitlement they need.
    case restrictedInternetAttribute
    /// An attribute that belongs to the keychain itself.
    case internalAttribute
    case match(Match)
    case returns(ResultParts)
    case secret
    case persistentReference
    case authenticationUI
    /// The older form of it.
    case noAuthenticationUI
    case operationPrompt
    case authenticationContext
    case leavesTombstones
    /// Accepted, and without effect.
    case ignored
    /// A name of four letters that passwords have no attribute for.
    case unknownAttribute
    case unknown

    /// A key that narrows or limits a search.
    enum Match {
        case limit
        case hostOrSubdomain
        case failsIfUnreadable
        /// Only certificates and identities have what it compares.
        case certificateOnly
        /// Accepted in a search, and without effect.
        case ignored
    }

    init(_ name: String) {
        self = Self.byName[name] ?? Self.unlisted(name)
    }

    /// Apple's keychain tells unknown names apart by their length and first letter.
    private static func unlisted(_ name: String) -> DictionaryKey {
        if name.utf16.count == 4 { return .unknownAttribute }
        guard name.utf16.count > 1 else { return .unknown }
        if name.hasPrefix("m") { return .match(.ignored) }
        // A slot for callbacks, which means nothing to passwords.
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
        kSecReturnAccount: .returns(.account),
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
