// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The part of the keychain that belongs to one valet.
///
/// Two valets with the same namespace contain the same items.
struct KeychainNamespace: Hashable, Sendable {
    let service: ExactString
    /// Nil: new items are stored in the program's own group, and searches include every group that it may read.
    let accessGroup: ExactString?
    let accessibilityAttribute: String
    let isSynchronizable: Bool
    /// The authentication that reading an item requires; nil for none.
    let accessControl: SecureEnclaveAccessControl?

    init(name: ValetName, kind: ValetKind, protection: some ItemProtection) {
        service = ExactString(name.service(kind: kind, protection: protection))
        accessGroup = name.accessGroup.map(ExactString.init)
        accessibilityAttribute = protection.secAccessibilityAttribute
        isSynchronizable = kind.isSynchronizable
        accessControl = protection.enclaveAccessControl
    }

    private init(service: ExactString, accessGroup: ExactString?, accessibilityAttribute: String) {
        self.service = service
        self.accessGroup = accessGroup
        self.accessibilityAttribute = accessibilityAttribute
        isSynchronizable = false
        accessControl = nil
    }

    /// The namespace that notes which task renews a value of this one.
    ///
    /// The same programs can use it in the same lock states. Its items are read without a prompt and stay on the device.
    var renewals: KeychainNamespace {
        KeychainNamespace(
            service: ExactString(RenewalNotes.servicePrefix + service.value), accessGroup: accessGroup,
            accessibilityAttribute: accessibilityAttribute)
    }

    /// Finds every item of the namespace.
    ///
    /// The query contains the accessibility because explicitly named valets can share a service and must not find each other's items.
    /// Valets with access control never share a service, and the access control of a new item contains the accessibility.
    var items: QueryTemplate {
        var query = QueryTemplate([
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

/// The items that note which task renews a value.
package enum RenewalNotes {
    /// The service of such an item begins with it; the service of the valet follows.
    package static let servicePrefix = "VAL_Renewals_"
}

/// The name of a valet, which determines the service and the access group of its items.
enum ValetName: Sendable {
    case identifier(Identifier)
    case sharedGroup(SharedGroupIdentifier, Identifier?)
    /// The service is the identifier alone.
    case explicitIdentifier(Identifier)
    /// The service is the group alone, without its prefix.
    case explicitSharedGroup(SharedGroupIdentifier)

    var identifier: Identifier {
        switch self {
        case .identifier(let identifier), .explicitIdentifier(let identifier): identifier
        case .sharedGroup(let group, let identifier): identifier ?? Identifier(group: group)
        case .explicitSharedGroup(let group): Identifier(group: group)
        }
    }

    /// The access group; nil for the program's own.
    var accessGroup: String? {
        switch self {
        case .identifier, .explicitIdentifier: nil
        case .sharedGroup(let group, _), .explicitSharedGroup(let group): group.description
        }
    }

    /// Returns the service of the items.
    ///
    /// Other versions of Valet find items by exactly this text.
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

/// The kind of a valet.
///
/// The service of its items contains the name of the kind.
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

    /// A name for people.
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

/// The protection of items: the value of their attribute, and the name in their service.
protocol ItemProtection: CustomStringConvertible, Sendable {
    var secAccessibilityAttribute: String { get }
    /// The authentication that reading an item requires; nil for none.
    var enclaveAccessControl: SecureEnclaveAccessControl? { get }
}

extension ItemProtection {
    var enclaveAccessControl: SecureEnclaveAccessControl? { nil }
}

extension Accessibility: ItemProtection {}

/// The protection classes of earlier valets that Apple has withdrawn.
///
/// Their items can only be migrated to another valet.
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
    /// on Apple platforms: their use would be a warning.
    var secAccessibilityAttribute: String {
        switch self {
        case .always: "dk"
        case .alwaysThisDeviceOnly: "dku"
        }
    }
}
