// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

/// The valet that a command works on, and the program that owns its items.
struct SelectedValet {
    /// The application identifier of this command, for which keychaind may give it another group.
    static let ownApplication = "valet"

    let valet: any ValetProtocol
    let accessibility: AccessibilityOption
    /// The application identifier of the program.
    let application: String
    private let group: String?
    private let isCloud: Bool
    /// Whether the identifier or the group is its service, which it then shares with the valets of other accessibilities.
    let isExplicit: Bool
    /// The other options, from which the same valet with another accessibility is made.
    private let variant: @Sendable (AccessibilityOption) -> SelectedValet?

    init(
        identifier: String?, accessibility: AccessibilityOption, group: String?, isCloud: Bool, isExplicit: Bool,
        enclave: SecureEnclaveSelection? = nil, application: String
    ) throws(CommandFailure) {
        self.accessibility = enclave == nil ? accessibility : .whenPasscodeSetThisDeviceOnly
        valet =
            switch (group, enclave) {
            case (let group?, let enclave?):
                Self.sharedGroupValet(try Self.parse(group: group), try identifier.map(Self.parse(identifier:)), enclave)
            case (nil, let enclave?):
                Self.ownValet(try Self.parse(identifier: identifier ?? "default"), enclave)
            case (let group?, nil):
                try Self.sharedGroupValet(
                    try Self.parse(group: group), identifier, accessibility, isCloud: isCloud, isExplicit: isExplicit)
            case (nil, nil):
                try Self.ownValet(
                    try Self.parse(identifier: identifier ?? "default"), accessibility, isCloud: isCloud, isExplicit: isExplicit)
            }
        guard !application.isEmpty else {
            throw CommandFailure(
                .usage, "the application identifier is empty", advice: "Give --app an application identifier, or omit it.")
        }
        self.application = application
        self.group = group
        self.isCloud = isCloud
        self.isExplicit = isExplicit
        variant = { other in
            try? SelectedValet(
                identifier: identifier, accessibility: other, group: group, isCloud: isCloud, isExplicit: isExplicit,
                application: application)
        }
    }

    /// The service of its items.
    var service: String { valet.itemQuery[kSecAttrService as String] as? String ?? "" }

    /// The access group of new items.
    var accessGroup: String { group ?? application }

    /// Where its items are.
    var place: ItemPlace {
        ItemPlace(
            accessGroup: accessGroup, service: service, accessibility: accessibility.itemAccessibility, isSynchronizable: isCloud)
    }

    /// This valet and those that differ in their accessibility only; this one alone if it is explicitly named, because those share a service.
    var siblings: [SelectedValet] {
        guard !requiresAuthentication else { return [self] }
        let others = AccessibilityOption.allCases.filter { $0 != accessibility }.compactMap(variant)
        return [self] + others.filter { $0.service != service }
    }

    /// Whether it is the valet of an access group.
    var isOfGroup: Bool { group != nil }

    /// Whether a person has to authenticate before an item of the valet can be read.
    var requiresAuthentication: Bool { type(of: valet).requiresAuthentication }

    /// The entitlements of the program: its own items, and those of the access group in the options.
    var entitlements: Entitlements { entitlements(alsoReaching: nil) }

    /// The entitlements of a command that also works on `other`.
    func entitlements(alsoReaching other: SelectedValet) -> Entitlements { entitlements(alsoReaching: other.group) }

    /// The entitlements of a command that also works on the items of a group.
    func entitlements(alsoReaching otherGroup: String?) -> Entitlements {
        Entitlements(
            applicationIdentifier: application, applicationGroups: [group, otherGroup].compactMap(\.self),
            origin: "the options of this command"
        )
    }

    private static func ownValet(_ identifier: Identifier, _ enclave: SecureEnclaveSelection) -> any ValetProtocol {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? SinglePromptSecureEnclaveValet.valet(with: identifier, accessControl: accessControl)
            : SecureEnclaveValet.valet(with: identifier, accessControl: accessControl)
    }

    private static func sharedGroupValet(
        _ group: SharedGroupIdentifier, _ identifier: Identifier?, _ enclave: SecureEnclaveSelection
    ) -> any ValetProtocol {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? SinglePromptSecureEnclaveValet.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl)
            : SecureEnclaveValet.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl)
    }

    private static func ownValet(
        _ identifier: Identifier, _ accessibility: AccessibilityOption, isCloud: Bool, isExplicit: Bool
    ) throws(CommandFailure) -> Valet {
        switch (isCloud, isExplicit) {
        case (false, false): .valet(with: identifier, accessibility: accessibility.accessibility)
        case (false, true): .valet(withExplicitlySet: identifier, accessibility: accessibility.accessibility)
        case (true, false): .iCloudValet(with: identifier, accessibility: try cloud(accessibility))
        case (true, true): .iCloudValet(withExplicitlySet: identifier, accessibility: try cloud(accessibility))
        }
    }

    private static func sharedGroupValet(
        _ group: SharedGroupIdentifier, _ identifier: String?, _ accessibility: AccessibilityOption, isCloud: Bool, isExplicit: Bool
    ) throws(CommandFailure) -> Valet {
        if isExplicit, identifier != nil {
            throw CommandFailure(
                .usage, "--identifier cannot be combined with --explicit and --group: such a valet is named by its group only",
                advice: "Omit --identifier.")
        }
        let identifier = try identifier.map(parse(identifier:))
        return switch (isCloud, isExplicit) {
        case (false, false): .sharedGroupValet(with: group, identifier: identifier, accessibility: accessibility.accessibility)
        case (false, true): .sharedGroupValet(withExplicitlySet: group, accessibility: accessibility.accessibility)
        case (true, false): .iCloudSharedGroupValet(with: group, identifier: identifier, accessibility: try cloud(accessibility))
        case (true, true): .iCloudSharedGroupValet(withExplicitlySet: group, accessibility: try cloud(accessibility))
        }
    }

    private static func parse(identifier: String) throws(CommandFailure) -> Identifier {
        guard let identifier = Identifier(nonEmpty: identifier) else {
            throw CommandFailure(.usage, "the identifier is empty", advice: "Give --identifier a name, or omit it.")
        }
        return identifier
    }

    /// Parses an access group: `group.name` is an application group; any other prefix is an App ID prefix.
    ///
    /// `variable` is the environment variable that has the text, if it is not in an option.
    static func parse(group: String, in variable: String? = nil) throws(CommandFailure) -> SharedGroupIdentifier {
        let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let identifier = SharedGroupIdentifier(appIDPrefix: parts[0], nonEmptyGroup: parts[1]) else {
            throw CommandFailure(
                .usage, "the access group\(variable.map { " in \($0)" } ?? "") has no prefix or no name",
                advice: "Give it as PREFIX.GROUP, such as group.com.example.shared.")
        }
        return identifier
    }

    private static func cloud(_ option: AccessibilityOption) throws(CommandFailure) -> CloudAccessibility {
        guard let accessibility = option.cloudAccessibility else {
            throw CommandFailure(
                .usage, "items of an iCloud valet cannot be limited to this device",
                advice: "With --cloud, choose --accessibility when-unlocked or after-first-unlock."
            )
        }
        return accessibility
    }
}

// MARK: - Items

// Searches that a valet does not have, with its query for Keychain Services.

extension SelectedValet {
    /// Returns the valet if its keys can be listed.
    ///
    /// Throws for a valet that requires authentication for each item.
    func requireListable() throws(CommandFailure) -> any ListableValet {
        if let valet = valet as? any ListableValet { return valet }
        throw CommandFailure(
            .usage, "the keys of this valet cannot be listed: each item requires its own authentication",
            advice: "Use `valet exists` to check one key. Only valets with --single-prompt can be listed, which have items of their own."
        )
    }

    /// Returns every key of the valet, for a command that needs all secrets.
    ///
    /// `outcome` is what an error means for the command, such as "nothing was written".
    static func allKeys(of valet: any ListableValet, reason: String, outcome: String) throws -> [String] {
        let list = try valet.keyList(userPrompt: reason, isComplete: true)
        guard list.unnamedCount == 0 else { throw CommandFailure.unnamedItems(list.unnamedCount, outcome: outcome) }
        // A mistyped option selects an empty valet.
        guard !list.keys.isEmpty else { throw CommandFailure.emptyValet(outcome: outcome) }
        return list.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Returns the items with these keys.
    ///
    /// Reads one secret at a time, to measure it.
    func items(of valet: any ListableValet, with list: KeyList, reason: String) throws -> [ListedItem] {
        let found = try valet.withItemQuery(userPrompt: reason, Self.attributes(matching:))
        let keys = Set(list.keys)
        return found.compactMap { attributes in
            guard let key = ItemKey.text(ofAccount: attributes[kSecAttrAccount as String]), keys.contains(key) else { return nil }
            return ListedItem(
                key: key, accessibility: accessibility,
                created: attributes[kSecAttrCreationDate as String] as? Date,
                modified: attributes[kSecAttrModificationDate as String] as? Date,
                byteCount: try? valet.object(forKey: key, withPrompt: reason).count
            )
        }
    }

    /// Stores a secret unless one exists under the key.
    ///
    /// The check and the write are one atomic operation.
    func add(_ secret: Data, forKey key: String) throws {
        guard !secret.isEmpty else { throw KeychainError.emptyValue }
        let status = SecItemAdd(try valet.newItem(forKey: key, value: secret) as CFDictionary, nil)
        guard status == errSecSuccess else { throw Self.failure(status) }
    }

    private static func attributes(matching query: [String: Any]) throws -> [[String: Any]] {
        var query = query
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let found = result as? [[String: Any]] else { throw Self.failure(status) }
        return found
    }

    private static func failure(_ status: OSStatus) -> KeychainFailure {
        KeychainFailure(KeychainStatus(rawValue: status), SecCopyErrorMessageString(status, nil) ?? "status \(status)")
    }
}
