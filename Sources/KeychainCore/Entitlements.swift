// SPDX-License-Identifier: Apache-2.0

/// The entitlements of a program: its application identifier and its access groups.
///
/// Source: Apple, "Sharing access to keychain items among a collection of apps".
package struct Entitlements: Hashable, Sendable {
    package let applicationIdentifier: String
    /// All groups in order: keychain access groups, associated identifiers, the application identifier, application groups.
    ///
    /// The first one is the default for new items.
    package let accessGroups: [String]
    /// The groups of other programs that a person lets this one read; searches look there after the program's own groups.
    package private(set) var readableGroups: [String] = []
    /// Whether the program is an app clip, which may use only its own group and cannot synchronize.
    package let isAppClip: Bool
    /// Whether items may need biometry: something verifies it.
    package var offersBiometry = false
    /// The source of the entitlements, for error messages: a file's path or a phrase.
    package let origin: String

    /// A group that no program may use, for the error message.
    private let reservedGroup: String?

    /// The group of tokens: readable, never writable.
    package static let tokenGroup = "com.apple.token"
    /// The beginning of the names of groups whose items are the keys of synchronization itself.
    ///
    /// These never leave the device, and no program may use them.
    package static let synchronizationGroupPrefix = "keychain-sync."

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
        reservedGroup = ordered.first(where: Self.isInternal)
        ordered.removeAll(where: Self.isInternal)
        accessGroups = ordered.filter { $0 != Self.tokenGroup } + ordered.filter { $0 == Self.tokenGroup }
        self.isAppClip = isAppClip
        self.origin = origin
    }

    /// The entitlements of synchronization itself, which has the only group of its kind.
    package static let synchronization = Entitlements(internalGroup: synchronizationGroupPrefix + "circle", origin: "synchronization")

    /// The group of the item with the biometric keys of a keychain, which no program may use.
    package static let biometryGroup = "keychain-biometry"
    /// The entitlements of biometry itself.
    package static let biometry = Entitlements(internalGroup: biometryGroup, origin: "biometry")

    /// Whether the items of a group are keys of the keychain itself, which never leave the device.
    package static func isInternal(_ group: String) -> Bool {
        group.hasPrefix(synchronizationGroupPrefix) || group.hasSameBytes(as: biometryGroup)
    }

    private init(internalGroup group: String, origin: String) {
        applicationIdentifier = group
        accessGroups = [group]
        isAppClip = false
        self.origin = origin
        reservedGroup = nil
    }

    /// The group of new items that name none.
    package var defaultGroup: String? { accessGroups.first { $0 != Self.tokenGroup } }

    package func canRead(_ group: String) -> Bool { (accessGroups + readableGroups).contains(where: group.hasSameBytes) }

    package func canWrite(_ group: String) -> Bool { group != Self.tokenGroup && accessGroups.contains(where: group.hasSameBytes) }

    /// Returns the entitlements with groups that the program may also read, which are those of other programs.
    package func reading(_ groups: [String]) -> Entitlements {
        var entitlements = self
        entitlements.readableGroups = groups.filter { !Self.isInternal($0) && !canRead($0) }
        return entitlements
    }
}

/// Checks of access groups. They prevent mistakes; they do not protect against another process of the same user.
extension Entitlements {
    package enum Access: Sendable {
        case read, write
    }

    /// Returns the groups of a search: the named one, or else all that the program may access in this way.
    package func groups(forSearchNaming explicit: String?, access: Access) throws(KeychainFailure) -> [String] {
        try requireAnyGroup()
        if let explicit {
            try requireAccess(access, to: explicit)
            return [explicit]
        }
        return access == .write ? accessGroups.filter(canWrite) : accessGroups + readableGroups
    }

    /// Returns the group of a new item.
    package func group(forNewItemNaming explicit: String?) throws(KeychainFailure) -> String {
        try requireAnyGroup()
        guard let group = explicit ?? defaultGroup else { throw noGroups }
        try requireAccess(.write, to: group)
        return group
    }

    /// Throws `.missingEntitlement` unless the program may access the group.
    package func requireAccess(_ access: Access, to group: String) throws(KeychainFailure) {
        guard access == .write ? canWrite(group) : canRead(group) else {
            let entitlement = Self.entitlement(listing: group)
            // An application group never becomes the group of the program's own new items.
            let effect = entitlement == Self.keychainAccessGroups ? ", whose first group gets the program's new items," : ""
            throw KeychainFailure(
                .missingEntitlement,
                "this program is not entitled to the access group '\(group)': add it to \(entitlement)\(effect) in \(origin)")
        }
    }

    private static let keychainAccessGroups = "keychain-access-groups"

    /// Returns the entitlement that lists a group.
    package static func entitlement(listing group: String) -> String {
        group.hasPrefix("group.") ? "com.apple.security.application-groups" : keychainAccessGroups
    }

    /// Throws `.restrictedAPI` for an app clip.
    package func requireSynchronizationAllowed() throws(KeychainFailure) {
        guard !isAppClip else {
            throw KeychainFailure(.restrictedAPI, "an app clip cannot store synchronizable items")
        }
    }

    private func requireAnyGroup() throws(KeychainFailure) {
        if let reservedGroup {
            throw KeychainFailure(
                .missingEntitlement,
                "'\(reservedGroup)' belongs to the keychain itself, so no program may use it: remove it from \(origin)")
        }
        guard !accessGroups.isEmpty || !readableGroups.isEmpty else { throw noGroups }
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

/// Checks of new values that need no open keychain.
extension Entitlements {
    /// Returns the group and the protection of a new item; throws if it can never be stored.
    package func validateAdd(_ request: AddRequest) throws(KeychainFailure) -> (group: String, control: AccessControl) {
        let group = try group(forNewItemNaming: request.attributes.text(.accessGroup))
        try request.itemClass.requirePassword()
        let control = request.accessControl ?? AccessControl(Self.defaultAccessibility(in: group))
        try requireStorable(control, isSynchronizable: request.attributes.flag(.synchronizable) ?? false)
        try requireNoToken(request.attributes)
        return (group, control)
    }

    func requireStorable(_ control: AccessControl, isSynchronizable: Bool) throws(KeychainFailure) {
        if isSynchronizable { try requireSynchronizationAllowed() }
        // Parsing a dictionary refuses this already; checked here for other callers.
        guard !isSynchronizable || control.isUnconstrained else {
            throw KeychainFailure(.parameter, "an item with access control cannot be synchronizable")
        }
        guard control.constraint?.isSatisfiable(withBiometry: offersBiometry) != false else {
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

    /// Apple's default: a class of its own for the group of the push service, `ak` for all others.
    private static func defaultAccessibility(in group: String) -> ItemAccessibility {
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
