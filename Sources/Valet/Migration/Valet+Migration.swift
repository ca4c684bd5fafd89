// SPDX-License-Identifier: Apache-2.0
public import Foundation

extension Valet {
    /// Copies existing keychain items into this valet, all of them or none.
    ///
    /// All items are read and checked before any is written. All changes are one transaction; on Apple platforms, which have none, the
    /// previous steps are undone if a write or a removal fails. An item that another program added or changed in the meantime is never removed.
    ///
    /// If an item cannot be read, nothing is migrated. On Apple platforms a search leaves out unreadable items, so there the migration
    /// leaves them where they are.
    ///
    /// - Parameters:
    ///   - query: The items to migrate: `kSecClass`, which must be `kSecClassGenericPassword`, and any other attributes. The query must not
    ///     request data or references, set a limit of one, or contain an access control. For items with access control the user is
    ///     prompted once, with the query's `LAContext` if it contains one.
    ///   - removeOnCompletion: Whether to remove the original items.
    /// - Throws: A ``MigrationError`` or a ``KeychainError``: ``KeychainError/itemNotFound`` if nothing matches,
    ///   ``KeychainError/couldNotAccessKeychain`` if an item cannot be read, for example because it is damaged. All changes are then
    ///   rolled back; on Apple platforms a restored item has new dates.
    public func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        try migration(from: MigrationQuery(query)).run(removingOriginals: removeOnCompletion)
    }

    /// Copies the values of another valet into this one, all of them or none.
    ///
    /// - Parameters:
    ///   - valet: The source.
    ///   - removeOnCompletion: Whether to remove the values from the source.
    /// - Throws: The errors of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws {
        try migration(from: MigrationQuery(valet.keychain.items)).run(removingOriginals: removeOnCompletion)
    }

    /// Copies existing keychain items into this valet and transforms each one, all of them or none.
    ///
    /// The original items are not removed.
    ///
    /// - Parameters:
    ///   - query: The items to migrate, as in ``migrateObjects(matching:removeOnCompletion:)``.
    ///   - compactMap: A closure that returns the pair to store for the pair of an item, or nil to leave out the item. If it throws,
    ///     nothing is written.
    /// - Throws: The errors of `compactMap` and of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(
        matching query: [String: AnyHashable],
        compactMap: (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?
    ) throws {
        try migration(from: MigrationQuery(query)).run(compactMap)
    }

    /// Copies the values of another valet into this one and transforms each one, all of them or none.
    ///
    /// The original values are not removed.
    ///
    /// - Parameters:
    ///   - valet: The source.
    ///   - compactMap: A closure that returns the pair to store for each pair, or nil to leave it out. If it throws, nothing is written.
    /// - Throws: The errors of `compactMap` and of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(
        from valet: Valet,
        compactMap: (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?
    ) throws {
        try migration(from: MigrationQuery(valet.keychain.items)).run(compactMap)
    }

    /// Copies the values that an earlier version of this valet stored with the withdrawn accessibility `always`.
    ///
    /// - Parameter removeOnCompletion: Whether to remove the original values.
    /// - Throws: The errors of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: Bool) throws {
        try migrate(fromWithdrawn: .always, removeOnCompletion: removeOnCompletion)
    }

    /// Copies the values that an earlier version of this valet stored with the withdrawn accessibility `alwaysThisDeviceOnly`.
    ///
    /// - Parameter removeOnCompletion: Whether to remove the original values.
    /// - Throws: The errors of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(removeOnCompletion: Bool) throws {
        try migrate(fromWithdrawn: .alwaysThisDeviceOnly, removeOnCompletion: removeOnCompletion)
    }

    /// Copies the values that this valet stored on macOS 10.14 or earlier, in the file-based keychain that later systems do not search.
    ///
    /// The original items are not removed. Does nothing on other platforms and for iCloud valets.
    ///
    /// - Throws: The errors of ``migrateObjects(matching:removeOnCompletion:)``: ``KeychainError/itemNotFound`` if there are no such
    ///   values.
    public func migrateObjectsFromPreCatalina() throws {
        guard let items = PlatformRules.itemsFromPreCatalina(keychain.items, of: keychain.namespace) else { return }
        try migration(from: MigrationQuery(items)).run(removingOriginals: false)
    }

    private func migrate(fromWithdrawn accessibility: WithdrawnAccessibility, removeOnCompletion: Bool) throws {
        let namespace = KeychainNamespace(name: name, kind: kind, protection: accessibility)
        try migration(from: MigrationQuery(namespace.items)).run(removingOriginals: removeOnCompletion)
    }

    private func migration(from source: MigrationQuery) -> Migration {
        Migration(source: source, destination: keychain)
    }
}

/// A key and its value during a migration.
public struct MigratableKeyValuePair<Key: Hashable>: Hashable {
    /// The key.
    ///
    /// A key read from the keychain is a `String`, or possibly `Data` or a number if another program stored the item.
    public let key: Key
    /// The value, as bytes.
    public let value: Data

    /// Creates a pair whose value is bytes.
    ///
    /// - Parameters:
    ///   - key: The key. To migrate into a valet it must not be empty.
    ///   - value: The value. To migrate into a valet it must not be empty.
    public init(key: Key, value: Data) {
        self.key = key
        self.value = value
    }

    /// Creates a pair whose value is text.
    ///
    /// - Parameters:
    ///   - key: The key. To migrate into a valet it must not be empty.
    ///   - value: The value, stored as UTF-8. To migrate into a valet it must not be empty.
    public init(key: Key, value: String) {
        self.init(key: key, value: Data(value.utf8))
    }
}

extension MigratableKeyValuePair: Sendable where Key: Sendable {}

/// The reason why no values were migrated.
///
/// All changes were rolled back.
public enum MigrationError: Int, LocalizedError, CaseIterable, CustomStringConvertible, Sendable {
    /// The query is empty, does not find generic passwords, or sets options that a migration sets itself.
    case invalidQuery
    /// The key of an item is not text, or is empty.
    case keyToMigrateInvalid
    /// The value of an item is empty.
    case dataToMigrateInvalid
    /// Two items would have the same key.
    case duplicateKeyToMigrate
    /// The destination already has a value for a key.
    case keyToMigrateAlreadyExistsInValet
    /// An original item could not be removed, or was changed in the meantime.
    case removalFailed

    /// The names of the type and the case.
    public var description: String {
        switch self {
        case .invalidQuery: "MigrationError.invalidQuery"
        case .keyToMigrateInvalid: "MigrationError.keyToMigrateInvalid"
        case .dataToMigrateInvalid: "MigrationError.dataToMigrateInvalid"
        case .duplicateKeyToMigrate: "MigrationError.duplicateKeyToMigrate"
        case .keyToMigrateAlreadyExistsInValet: "MigrationError.keyToMigrateAlreadyExistsInValet"
        case .removalFailed: "MigrationError.removalFailed"
        }
    }

    /// One sentence about the problem, and the next step, in English.
    public var errorDescription: String? { [problem, recoverySuggestion].compactMap(\.self).joined(separator: " ") }

    /// What to do next, in English.
    public var recoverySuggestion: String? {
        switch self {
        case .invalidQuery: "Give a query for generic passwords, without options for the result."
        case .keyToMigrateInvalid: "Leave the item out, or give it another key, with `compactMap`."
        case .dataToMigrateInvalid: "Leave the item out with `compactMap`."
        case .duplicateKeyToMigrate: "Narrow the query to one service, or change one of the keys with `compactMap`."
        case .keyToMigrateAlreadyExistsInValet: "Remove the value from the destination, or leave the item out with `compactMap`."
        case .removalFailed: "Try again."
        }
    }

    private var problem: String {
        switch self {
        case .invalidQuery: "The query of the migration is not valid."
        case .keyToMigrateInvalid: "The key of an item to migrate is empty or not text."
        case .dataToMigrateInvalid: "The value of an item to migrate is empty."
        case .duplicateKeyToMigrate: "Two items to migrate have the same key."
        case .keyToMigrateAlreadyExistsInValet: "The destination already has a value for a key."
        case .removalFailed: "An original item could not be removed, or was changed during the migration."
        }
    }
}
