// SPDX-License-Identifier: Apache-2.0

/// What a valet was named with.
///
/// It decides the service and the access group of its items.
enum SandboxName: Sendable {
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
