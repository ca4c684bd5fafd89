// SPDX-License-Identifier: Apache-2.0

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
