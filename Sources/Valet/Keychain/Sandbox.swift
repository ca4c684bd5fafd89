// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The part of the keychain that one valet sees.
///
/// Two valets with the same sandbox see the same items.
struct Sandbox: Hashable, Sendable {
    let service: ExactString
    /// Nil: the program's own group for new items, and every group it may read for searches.
    let accessGroup: ExactString?
    let accessibilityAttribute: String
    let isSynchronizable: Bool
    /// What a person must do to read the items; nil: nothing.
    let accessControl: SecureEnclaveAccessControl?

    init(name: ValetName, kind: ValetKind, protection: some ItemProtection) {
        service = ExactString(name.service(kind: kind, protection: protection))
        accessGroup = name.accessGroup.map(ExactString.init)
        accessibilityAttribute = protection.secAccessibilityAttribute
        isSynchronizable = kind.isSynchronizable
        accessControl = protection.enclaveAccessControl
    }

    /// Finds every item of the sandbox.
    ///
    /// The accessibility is part of it: explicitly named valets share a service, and must not see each other's items. Where a person
    /// has to release items the service is never shared, and the access control of a new one says the accessibility.
    var items: ItemQuery {
        var query = ItemQuery([
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service.value,
            kSecUseDataProtectionKeychain as String: true,
        ])
        if accessControl == nil { query = query.with([kSecAttrAccessible as String: accessibilityAttribute]) }
        if let accessGroup { query = query.with([kSecAttrAccessGroup as String: accessGroup.value]) }
        if isSynchronizable { query = query.with([kSecAttrSynchronizable as String: true]) }
        return query
    }
}

/// What a valet was named with.
///
/// It decides the service and the access group of its items.
enum ValetName: Sendable {
    case identifier(Identifier)
    case sharedGroup(SharedGroupIdentifier, Identifier?)
    /// The service is the identifier and nothing else.
    case explicitIdentifier(Identifier)
    /// The service is the group without its prefix and nothing else.
    case explicitSharedGroup(SharedGroupIdentifier)

    var identifier: Identifier {
        switch self {
        case .identifier(let identifier), .explicitIdentifier(let identifier): identifier
        case .sharedGroup(let group, let identifier): identifier ?? Identifier(group: group)
        case .explicitSharedGroup(let group): Identifier(group: group)
        }
    }

    /// Nil: the program's own group.
    var accessGroup: String? {
        switch self {
        case .identifier, .explicitIdentifier: nil
        case .sharedGroup(let group, _), .explicitSharedGroup(let group): group.description
        }
    }

    /// The service of the items: other versions of Valet find items by exactly this text.
    func service(kind: ValetKind, protection: some ItemProtection) -> String {
        switch self {
        case .identifier(let identifier):
            "VAL_\(kind.serviceName)_initWithIdentifier:accessibility:_\(identifier)_\(protection)"
        case .sharedGroup(let group, let identifier):
            "VAL_\(kind.serviceName)_initWithSharedAccessGroupIdentifier:accessibility:_"
                + [group.group, identifier?.description, protection.description].compactMap(\.self).joined(separator: "_")
        case .explicitIdentifier(let identifier):
            identifier.description
        case .explicitSharedGroup(let group):
            group.group
        }
    }
}

/// What sort of valet wrote an item.
///
/// Each sort has a name in the service of its items.
enum ValetKind: Sendable {
    case local
    case iCloud
    case secureEnclave
    case singlePrompt

    var serviceName: String {
        switch self {
        case .local: "VALValet"
        case .iCloud: "VALSynchronizableValet"
        case .secureEnclave: "VALSecureEnclaveValet"
        case .singlePrompt: "VALSinglePromptSecureEnclaveValet"
        }
    }

    /// For a person to read.
    var label: String {
        switch self {
        case .local: "Valet"
        case .iCloud: "iCloud"
        case .secureEnclave: "Secure Enclave"
        case .singlePrompt: "Single Prompt"
        }
    }

    var isSynchronizable: Bool { self == .iCloud }
}

/// A protection class as it is written into items: its value, and its name in their service.
protocol ItemProtection: CustomStringConvertible, Sendable {
    var secAccessibilityAttribute: String { get }
    /// What a person must do to read the items; nil: nothing.
    var enclaveAccessControl: SecureEnclaveAccessControl? { get }
}

extension ItemProtection {
    var enclaveAccessControl: SecureEnclaveAccessControl? { nil }
}

extension Accessibility: ItemProtection {}

/// The protection classes that earlier valets offered and Apple has withdrawn.
///
/// Their items can only be migrated away.
enum WithdrawnAccessibility: ItemProtection {
    case always
    case alwaysThisDeviceOnly

    var description: String {
        switch self {
        case .always: "AccessibleAlways"
        case .alwaysThisDeviceOnly: "AccessibleAlwaysThisDeviceOnly"
        }
    }

    /// The values of `kSecAttrAccessibleAlways` and `kSecAttrAccessibleAlwaysThisDeviceOnly`, which are deprecated
    /// on Apple platforms: naming them would be a warning.
    var secAccessibilityAttribute: String {
        switch self {
        case .always: "dk"
        case .alwaysThisDeviceOnly: "dku"
        }
    }
}
