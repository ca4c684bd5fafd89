// SPDX-License-Identifier: Apache-2.0

/// What a program may reach: its application identifier and access groups, in the order of the default for new items.
///
/// Source: Apple, "Sharing access to keychain items among a collection of apps".
package struct Entitlements: Hashable, Sendable {
    package let applicationIdentifier: String
    /// All groups in order: keychain access groups, associated identifiers, the application identifier, application groups.
    ///
    /// The first is where new items go.
    package let accessGroups: [String]
    /// An app clip may use its own group only and may not synchronise.
    package let isAppClip: Bool
    /// Where this was read, for the message that tells what to add: a file's path or a phrase.
    package let origin: String

    /// The group that tokens publish into: readable, never writable.
    package static let tokenGroup = "com.apple.token"

    package init(
        applicationIdentifier: String,
        keychainAccessGroups: [String] = [],
        associatedApplicationIdentifiers: [String] = [],
        applicationGroups: [String] = [],
        isAppClip: Bool = false,
        origin: String = "the program's defaults"
    ) {
        self.applicationIdentifier = applicationIdentifier
        let own = applicationIdentifier.isEmpty ? [] : [applicationIdentifier]
        var ordered: [String] = []
        for group in keychainAccessGroups + associatedApplicationIdentifiers + own + applicationGroups
        where !group.isEmpty && !ordered.contains(where: group.hasSameBytes) {
            ordered.append(group)
        }
        accessGroups = ordered.filter { $0 != Self.tokenGroup } + ordered.filter { $0 == Self.tokenGroup }
        self.isAppClip = isAppClip
        self.origin = origin
    }

    /// The group for new items that name none.
    package var defaultGroup: String? { accessGroups.first { $0 != Self.tokenGroup } }

    package func canRead(_ group: String) -> Bool { accessGroups.contains(where: group.hasSameBytes) }

    package func canWrite(_ group: String) -> Bool { group != Self.tokenGroup && canRead(group) }
}

/// Which access groups a call may touch. In-process this guards against mistakes, not against another program of the user.
extension Entitlements {
    package enum Access: Sendable {
        case read, write
    }

    /// The groups a search covers: the one it names, else all that the program may use in this way.
    package func groups(forSearchNaming explicit: String?, access: Access) throws(KeychainFailure) -> [String] {
        try requireAnyGroup()
        if let explicit {
            try requireAccess(access, to: explicit)
            return [explicit]
        }
        return access == .write ? accessGroups.filter(canWrite) : accessGroups
    }

    /// The group of a new item.
    package func group(forNewItemNaming explicit: String?) throws(KeychainFailure) -> String {
        try requireAnyGroup()
        guard let group = explicit ?? defaultGroup else { throw noGroups }
        try requireAccess(.write, to: group)
        return group
    }

    package func requireAccess(_ access: Access, to group: String) throws(KeychainFailure) {
        guard access == .write ? canWrite(group) : canRead(group) else {
            throw KeychainFailure(
                .missingEntitlement,
                "this program is not entitled to the access group '\(group)': add it to keychain-access-groups in \(origin)"
            )
        }
    }

    /// App clips have their own group and nothing else.
    package func requireSynchronizationAllowed() throws(KeychainFailure) {
        guard !isAppClip else {
            throw KeychainFailure(.restrictedAPI, "an app clip cannot store synchronizable items")
        }
    }

    private func requireAnyGroup() throws(KeychainFailure) {
        guard !accessGroups.isEmpty else { throw noGroups }
        guard !isAppClip || accessGroups.filter({ $0 != Self.tokenGroup }) == [applicationIdentifier] else {
            throw KeychainFailure(.restrictedAPI, "an app clip may use its own access group only")
        }
    }

    private var noGroups: KeychainFailure {
        KeychainFailure(
            .missingEntitlement,
            "this program has no access group: give it application-identifier or keychain-access-groups in \(origin)"
        )
    }
}

/// What can be stored at all, told from the call and the caller alone: asked before a keychain is opened, or made.
extension Entitlements {
    /// Where a new item goes and how it is protected; throws for one that could not be stored.
    package func validateAdd(_ request: AddRequest) throws(KeychainFailure) -> (group: String, control: AccessControl) {
        let group = try group(forNewItemNaming: request.attributes.text(.accessGroup))
        try request.itemClass.requirePassword()
        let control = request.accessControl ?? AccessControl(Self.defaultAccessibility(in: group))
        try requireStorable(control, isSynchronizable: request.attributes.flag(.synchronizable) ?? false)
        try requireNoToken(request.attributes)
        return (group, control)
    }

    func requireStorable(_ control: AccessControl, isSynchronizable: Bool) throws(KeychainFailure) {
        if isSynchronizable {
            try requireSynchronizationAllowed()
            guard !control.accessibility.isThisDeviceOnly else {
                throw KeychainFailure(.parameter, "an item that must stay on this device cannot be synchronizable")
            }
        }
        // With access control it is refused already where the dictionary is parsed; asked here for every other way.
        guard !isSynchronizable || control.isUnconstrained else {
            throw KeychainFailure(.parameter, "an item with access control cannot be synchronizable")
        }
        guard control.constraint?.isSatisfiable != false else {
            throw KeychainFailure.biometryNotAvailable()
        }
        guard !control.allowsPrivateKeyUsageOnly else {
            throw KeychainFailure(.parameter, "privateKeyUsage is for private keys: a password stored with it could never be read back")
        }
    }

    func requireNoToken(_ attributes: ItemAttributes) throws(KeychainFailure) {
        guard attributes.text(.tokenID)?.isEmpty ?? true else {
            throw KeychainFailure(.unimplemented, "items on a token cannot be stored")
        }
    }

    /// Apple gives its push service's group a class of its own; everything else starts as `ak`.
    private static func defaultAccessibility(in group: String) -> Accessibility {
        group == "com.apple.apsd" ? .alwaysThisDeviceOnly : .whenUnlocked
    }
}

extension ItemClass {
    func requirePassword() throws(KeychainFailure) {
        guard isPassword else {
            throw KeychainFailure(.unimplemented, "items of class '\(rawValue)' cannot be stored yet; passwords can")
        }
    }
}
