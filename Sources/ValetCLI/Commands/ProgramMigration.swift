// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

/// The migration of a valet's items from one program to another, both of this user.
///
/// Both valets have the same options, so their items differ in their access group only.
struct ProgramMigration {
    private let application: String
    let destination: SelectedValet
    /// The authentication for all calls, so that a person is asked once; nil if none is required.
    private let context: LAContext?

    /// Throws if the items belong to no program, or to the same one.
    init(from application: String, to destination: SelectedValet) throws(CommandFailure) {
        guard !application.isEmpty else {
            throw CommandFailure(.usage, "the application identifier is empty", advice: "Give --from-app an application identifier.")
        }
        guard destination.accessGroup == destination.application else {
            throw CommandFailure(
                .usage, "--from-app cannot be combined with --group: the items of a group belong to no single program",
                advice: "Omit --group; use --from-group for the items of a group.")
        }
        guard application != destination.application else {
            throw CommandFailure(
                .usage, "source and destination are the same program", advice: "Name the program that gets the items with --app.")
        }
        self.application = application
        self.destination = destination
        context = destination.requiresAuthentication ? LAContext() : nil
    }

    /// The entitlements of both programs; new items belong to the destination.
    var entitlements: Entitlements {
        Entitlements(
            applicationIdentifier: destination.application, associatedApplicationIdentifiers: [], applicationGroups: [application],
            origin: "the options of this command")
    }

    /// Returns the keys to copy or move.
    ///
    /// Only a move includes items whose account is not text.
    func keys(removingOriginals: Bool) throws -> [String] {
        let (keys, unnamedCount) = try keys(in: application)
        guard removingOriginals || unnamedCount == 0 else { throw MigrationError.keyToMigrateInvalid }
        return keys
    }

    /// Returns the keys that both programs have.
    func existingKeys() throws -> [String] {
        // Compared byte by byte, as the keychain does: `String` takes canonically equivalent keys for one.
        let present = Set(try keys(in: destination.application).keys.map { Array($0.utf8) })
        return try keys(in: application).keys.filter { present.contains(Array($0.utf8)) }
    }

    /// Copies or moves all items, or none.
    func migrate(removingOriginals: Bool) throws {
        if destination.requiresAuthentication, !removingOriginals {
            throw CommandFailure(
                .usage, "items of a Secure Enclave valet can be moved to another program, but not copied", advice: "Add --remove.")
        }
        let keys = try keys(removingOriginals: removingOriginals)
        guard !keys.isEmpty else { throw MigrateCommand.nothingToMigrateFromProgram }
        guard try existingKeys().isEmpty else { throw MigrationError.keyToMigrateAlreadyExistsInValet }
        try removingOriginals ? move() : copy(keys)
    }

    /// Changes the access group of all items in one call, which changes all of them or none, and prompts at most once.
    private func move() throws {
        // Each program has a probe of its own, so there is nothing to move.
        let status = SecItemDelete(query(application, Canary.key) as CFDictionary)
        if status != errSecItemNotFound { try Self.require(status) }
        let change = [kSecAttrAccessGroup as String: destination.application]
        try Self.require(SecItemUpdate(query(application) as CFDictionary, change as CFDictionary))
    }

    /// Copies the items in one transaction; where keychaind keeps the keychain, which has none, one by one, and removes the copies if one fails.
    private func copy(_ keys: [String]) throws {
        var failure: (any Error)?
        let outcome = withTransaction {
            do {
                for key in keys { try copy(key) }
                return true
            } catch {
                failure = error
                return false
            }
        }
        switch outcome {
        case .committed: return
        case .rolledBack: throw failure ?? KeychainError.couldNotAccessKeychain
        case .failed: throw KeychainError.couldNotAccessKeychain
        case .unsupported: try copyUndoing(keys)
        }
    }

    private func copyUndoing(_ keys: [String]) throws {
        var copied: [String] = []
        do {
            for key in keys {
                try copy(key)
                copied.append(key)
            }
        } catch {
            for key in copied { SecItemDelete(query(destination.application, key) as CFDictionary) }
            throw error
        }
    }

    private func query(_ group: String) -> [String: Any] {
        var query = destination.valet.itemQuery
        query[kSecAttrAccessGroup as String] = group
        if let context { query[kSecUseAuthenticationContext as String] = context }
        return query
    }

    private func query(_ group: String, _ key: String) -> [String: Any] {
        query(group).merging([kSecAttrAccount as String: key]) { _, new in new }
    }

    private func keys(in group: String) throws -> (keys: [String], unnamedCount: Int) {
        var query = query(group)
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        guard let items = try Self.copyMatching(query) as? [[String: Any]] else { return ([], 0) }
        let keys = items.compactMap { ItemKey.text(ofAccount: $0[kSecAttrAccount as String]) }
        return (keys.filter { $0 != Canary.key }, items.count - keys.count)
    }

    private func copy(_ key: String) throws {
        var query = query(application, key)
        query[kSecReturnData as String] = true
        guard let secret = try Self.copyMatching(query) as? Data else { throw KeychainError.itemNotFound }
        var item = try destination.valet.newItem(forKey: key, value: secret)
        item[kSecAttrAccessGroup as String] = destination.application
        try Self.require(SecItemAdd(item as CFDictionary, nil))
    }

    /// Returns nil if nothing matches.
    private static func copyMatching(_ query: [String: Any]) throws -> CFTypeRef? {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return nil }
        try require(status)
        return result
    }

    private static func require(_ status: OSStatus) throws {
        switch status {
        case errSecSuccess: return
        case errSecDuplicateItem: throw MigrationError.keyToMigrateAlreadyExistsInValet
        default:
            throw KeychainFailure(KeychainStatus(rawValue: status), SecCopyErrorMessageString(status, nil) ?? "status \(status)")
        }
    }
}
