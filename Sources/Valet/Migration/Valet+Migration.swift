// SPDX-License-Identifier: Apache-2.0
public import Foundation

extension Valet {
    /// Brings existing keychain items into this valet: all that match, or none.
    ///
    /// Everything is checked before anything is written. If writing or removing fails, what was done is undone. An item
    /// that was added or changed by somebody else in the meantime is never removed, and neither is one that cannot be read.
    ///
    /// - Parameters:
    ///   - query: Which items: `kSecClass`, which must be generic password, and any other attributes. It must not ask for
    ///     data or references, nor for one item only, nor name an access control.
    ///   - removeOnCompletion: Whether the items are removed from where they were.
    /// - Throws: A ``MigrationError``, or a ``KeychainError``: ``KeychainError/itemNotFound`` if nothing matches. The
    ///   keychain is as it was before, but an item put back has new dates.
    public func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        try migration(from: MigrationQuery(query)).run(removingOriginals: removeOnCompletion)
    }

    /// Brings the values of another valet into this one: all of them, or none.
    ///
    /// - Parameters:
    ///   - valet: Where the values are.
    ///   - removeOnCompletion: Whether they are removed from there.
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws {
        try migration(from: MigrationQuery(valet.keychain.items)).run(removingOriginals: removeOnCompletion)
    }

    /// Brings what is made of existing keychain items into this valet.
    ///
    /// The items stay where they are.
    ///
    /// - Parameters:
    ///   - query: Which items, as in ``migrateObjects(matching:removeOnCompletion:)``.
    ///   - compactMap: Makes the pair to store from the pair of each item. Nil leaves that item out; throwing ends the
    ///     migration with nothing written.
    /// - Throws: What `compactMap` throws, and as ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(
        matching query: [String: AnyHashable],
        compactMap: (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?
    ) throws {
        try migration(from: MigrationQuery(query)).run(compactMap)
    }

    /// Brings what is made of the values of another valet into this one.
    ///
    /// The values stay where they are.
    ///
    /// - Parameters:
    ///   - valet: Where the values are.
    ///   - compactMap: Makes the pair to store from each pair. Nil leaves that pair out; throwing ends the migration with
    ///     nothing written.
    /// - Throws: What `compactMap` throws, and as ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(
        from valet: Valet,
        compactMap: (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?
    ) throws {
        try migration(from: MigrationQuery(valet.keychain.items)).run(compactMap)
    }

    /// Brings the values that an earlier version of this valet kept with the withdrawn accessibility `always`.
    ///
    /// - Parameter removeOnCompletion: Whether they are removed from there.
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: Bool) throws {
        try migrate(fromWithdrawn: .always, removeOnCompletion: removeOnCompletion)
    }

    /// Brings the values that an earlier version of this valet kept with the withdrawn accessibility `alwaysThisDeviceOnly`.
    ///
    /// - Parameter removeOnCompletion: Whether they are removed from there.
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(removeOnCompletion: Bool) throws {
        try migrate(fromWithdrawn: .alwaysThisDeviceOnly, removeOnCompletion: removeOnCompletion)
    }

    /// Brings the values that this valet kept on macOS 10.14 or earlier, in a keychain that later systems do not look
    /// into.
    ///
    /// The old items stay there.
    ///
    /// There is nothing to do, and nothing is done, on other platforms and for iCloud valets.
    ///
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``, so ``KeychainError/itemNotFound`` if there are no
    ///   such values.
    public func migrateObjectsFromPreCatalina() throws {
        guard let items = PlatformRules.itemsFromPreCatalina(keychain.items, of: keychain.sandbox) else { return }
        try migration(from: MigrationQuery(items)).run(removingOriginals: false)
    }

    private func migrate(fromWithdrawn accessibility: WithdrawnAccessibility, removeOnCompletion: Bool) throws {
        let sandbox = Sandbox(name: name, kind: kind, protection: accessibility)
        try migration(from: MigrationQuery(sandbox.items)).run(removingOriginals: removeOnCompletion)
    }

    private func migration(from source: MigrationQuery) -> Migration {
        Migration(source: source, destination: keychain)
    }
}

/// A key with its value, on the way from one place of the keychain to another.
public struct MigratableKeyValuePair<Key: Hashable>: Hashable {
    /// The key.
    ///
    /// What is read from the keychain is a String or, for items of other programs, possibly Data or a number.
    public let key: Key
    /// The value, as bytes.
    public let value: Data

    /// A pair with bytes for its value.
    ///
    /// - Parameters:
    ///   - key: The key; migrating into a valet needs one that is not empty.
    ///   - value: The value; migrating into a valet needs one that is not empty.
    public init(key: Key, value: Data) {
        self.key = key
        self.value = value
    }

    /// A pair with text for its value.
    ///
    /// - Parameters:
    ///   - key: The key; migrating into a valet needs one that is not empty.
    ///   - value: The value, kept as UTF-8; migrating into a valet needs one that is not empty.
    public init(key: Key, value: String) {
        self.init(key: key, value: Data(value.utf8))
    }
}

extension MigratableKeyValuePair: Sendable where Key: Sendable {}

/// Why values were not migrated.
///
/// The keychain is as it was before the call.
public enum MigrationError: Int, Error, CaseIterable, CustomStringConvertible, Sendable {
    /// The query is empty, is not about generic passwords, or asks for what a migration decides itself.
    case invalidQuery
    /// An item has no key that can be used, or the key is empty.
    case keyToMigrateInvalid
    /// An item's value is empty.
    case dataToMigrateInvalid
    /// Two items would get the same key.
    case duplicateKeyToMigrate
    /// The valet migrated into already has a value for a key.
    case keyToMigrateAlreadyExistsInValet
    /// A migrated item could not be removed from where it came from, or was changed there in the meantime.
    case removalFailed

    /// The name of the type and of the case.
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
}
