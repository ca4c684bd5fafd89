// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

/// The valet that a command works on, and the program in whose name it does.
struct SelectedValet {
    let valet: ChosenValet
    let accessibility: AccessibilityOption
    /// The application identifier of the program whose items these are.
    let application: String
    private let group: String?

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
                try .plain(
                    Self.sharedGroupValet(
                        try Self.parse(group: group), identifier, accessibility, isCloud: isCloud, isExplicit: isExplicit))
            case (nil, nil):
                try .plain(
                    Self.ownValet(
                        try Self.parse(identifier: identifier ?? "default"), accessibility, isCloud: isCloud, isExplicit: isExplicit))
            }
        guard !application.isEmpty else {
            throw CommandFailure(
                .usage, "the application identifier is empty", advice: "Give --app the name of a program, or leave it out.")
        }
        self.application = application
        self.group = group
    }

    /// What the program may reach: its own items, and those of the groups that were named.
    var entitlements: Entitlements { entitlements(alsoReaching: nil) }

    /// The same for a command that works on `other` too.
    func entitlements(alsoReaching other: SelectedValet?) -> Entitlements {
        Entitlements(
            applicationIdentifier: application, applicationGroups: [group, other?.group].compactMap(\.self),
            origin: "the options of this command"
        )
    }

    private static func ownValet(_ identifier: Identifier, _ enclave: SecureEnclaveSelection) -> ChosenValet {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? .singlePrompt(.valet(with: identifier, accessControl: accessControl))
            : .secureEnclave(.valet(with: identifier, accessControl: accessControl))
    }

    private static func sharedGroupValet(
        _ group: SharedGroupIdentifier, _ identifier: Identifier?, _ enclave: SecureEnclaveSelection
    ) -> ChosenValet {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? .singlePrompt(.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl))
            : .secureEnclave(.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl))
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
                .usage, "--explicit with --group names the valet by its group alone", advice: "Leave out --identifier.")
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
            throw CommandFailure(.usage, "the identifier is empty", advice: "Give --identifier a name, or leave it out.")
        }
        return identifier
    }

    /// `group.name` is an application group; every other prefix is that of a maker.
    private static func parse(group: String) throws(CommandFailure) -> SharedGroupIdentifier {
        let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let identifier = SharedGroupIdentifier(appIDPrefix: parts[0], nonEmptyGroup: parts[1]) else {
            throw CommandFailure(
                .usage, "the access group has no prefix or no name", advice: "Write it as PREFIX.GROUP, such as group.com.example.shared.")
        }
        return identifier
    }

    private static func cloud(_ option: AccessibilityOption) throws(CommandFailure) -> CloudAccessibility {
        guard let accessibility = option.cloudAccessibility else {
            throw CommandFailure(
                .usage, "items of an iCloud valet cannot be kept to this device",
                advice: "With --cloud, choose --accessibility when-unlocked or after-first-unlock."
            )
        }
        return accessibility
    }
}

// What a valet cannot say or do, asked of Keychain Services with the valet's own query.

extension SelectedValet {
    /// Every item of the valet.
    ///
    /// Secrets are opened one at a time, only to be measured.
    func items(of valet: ListableValet) throws -> [ListedItem] {
        let found = try valet.withItemQuery(Self.attributes(matching:))
        let keys = try valet.allKeys()
        return found.compactMap { attributes in
            guard let key = attributes[kSecAttrAccount as String] as? String, keys.contains(key) else { return nil }
            return ListedItem(
                key: key, accessibility: accessibility,
                created: attributes[kSecAttrCreationDate as String] as? Date,
                modified: attributes[kSecAttrModificationDate as String] as? Date,
                byteCount: try? valet.object(forKey: key).count
            )
        }
    }

    /// Stores a secret only if there is none under the key: whether there is one is decided by the write itself.
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

/// A valet of one of the three types, each with what it can do.
enum ChosenValet: Equatable {
    case plain(Valet)
    case secureEnclave(SecureEnclaveValet)
    case singlePrompt(SinglePromptSecureEnclaveValet)

    /// Whether somebody is asked before a secret can be read.
    var asks: Bool {
        if case .plain = self { false } else { true }
    }

    var identifier: Identifier {
        switch self {
        case .plain(let valet): valet.identifier
        case .secureEnclave(let valet): valet.identifier
        case .singlePrompt(let valet): valet.identifier
        }
    }

    /// What Keychain Services is given to find the items.
    var itemQuery: [String: Any] {
        switch self {
        case .plain(let valet): valet.itemQuery
        case .secureEnclave(let valet): valet.itemQuery
        case .singlePrompt(let valet): valet.itemQuery
        }
    }

    /// What Keychain Services is given to add an item.
    func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        switch self {
        case .plain(let valet): try valet.newItem(forKey: key, value: value)
        case .secureEnclave(let valet): try valet.newItem(forKey: key, value: value)
        case .singlePrompt(let valet): try valet.newItem(forKey: key, value: value)
        }
    }

    func object(forKey key: String, reason: String) throws(KeychainError) -> Data {
        switch self {
        case .plain(let valet): try valet.object(forKey: key)
        case .secureEnclave(let valet): try valet.object(forKey: key, withPrompt: reason)
        case .singlePrompt(let valet): try valet.object(forKey: key, withPrompt: reason)
        }
    }

    func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.setObject(object, forKey: key)
        case .secureEnclave(let valet): try valet.setObject(object, forKey: key)
        case .singlePrompt(let valet): try valet.setObject(object, forKey: key)
        }
    }

    func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        switch self {
        case .plain(let valet): try valet.containsObject(forKey: key)
        case .secureEnclave(let valet): try valet.containsObject(forKey: key)
        case .singlePrompt(let valet): try valet.containsObject(forKey: key)
        }
    }

    func removeObject(forKey key: String) throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.removeObject(forKey: key)
        case .secureEnclave(let valet): try valet.removeObject(forKey: key)
        case .singlePrompt(let valet): try valet.removeObject(forKey: key)
        }
    }

    func removeAllObjects() throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.removeAllObjects()
        case .secureEnclave(let valet): try valet.removeAllObjects()
        case .singlePrompt(let valet): try valet.removeAllObjects()
        }
    }

    func migrateObjects(from source: Valet, removeOnCompletion: Bool) throws {
        switch self {
        case .plain(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        case .secureEnclave(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        case .singlePrompt(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        }
    }

    func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        switch self {
        case .plain(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        case .secureEnclave(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        case .singlePrompt(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        }
    }
}

/// A valet that can tell all its keys: with one answer, or without any.
enum ListableValet {
    case plain(Valet)
    case singlePrompt(SinglePromptSecureEnclaveValet, reason: String)

    func allKeys() throws(KeychainError) -> Set<String> {
        switch self {
        case .plain(let valet): try valet.allKeys()
        case .singlePrompt(let valet, let reason): try valet.allKeys(userPrompt: reason)
        }
    }

    func object(forKey key: String) throws(KeychainError) -> Data {
        switch self {
        case .plain(let valet): try valet.object(forKey: key)
        case .singlePrompt(let valet, let reason): try valet.object(forKey: key, withPrompt: reason)
        }
    }

    /// Searches with the valet's own query.
    func withItemQuery<Result>(_ search: ([String: Any]) throws -> Result) throws -> Result {
        switch self {
        case .plain(let valet): try search(valet.itemQuery)
        case .singlePrompt(let valet, let reason): try valet.withItemQuery(userPrompt: reason, search)
        }
    }
}

extension SelectedValet {
    /// Throws for a valet whose items are released one by one.
    func requireListable(reason: String) throws(CommandFailure) -> ListableValet {
        switch valet {
        case .plain(let valet): return .plain(valet)
        case .singlePrompt(let valet): return .singlePrompt(valet, reason: reason)
        case .secureEnclave:
            throw CommandFailure(
                .usage, "the keys of this valet cannot be listed: each of its items has to be released by itself",
                advice: "`valet exists` tells of one key. In a valet with --single-prompt one answer serves a list."
            )
        }
    }
}
