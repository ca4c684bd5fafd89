/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain of errors of migrations, `Valet.MigrationError`: the one that Valet 4 gives. The code is a `VALMigrationResult`.
extern NSString *_Nonnull const VALMigrationResultDomain;

/// Why a migration did not take place. The numbers are those of Swift's `MigrationError`; Objective-C has the older name.
typedef NS_ENUM(NSInteger, VALMigrationResult) {
    /// The query is empty, is not about generic passwords, asks for what a migration decides itself, or holds what no query can.
    VALMigrationResultInvalidQuery = 0,
    /// An item has no key that can be used, or the key is empty.
    VALMigrationResultKeyToMigrateInvalid = 1,
    /// An item's value is empty.
    VALMigrationResultDataToMigrateInvalid = 2,
    /// Two items would get the same key.
    VALMigrationResultDuplicateKeyToMigrate = 3,
    /// The valet migrated into already has a value for a key.
    VALMigrationResultKeyToMigrateAlreadyExistsInValet = 4,
    /// A migrated item could not be removed from where it came from, or was changed there in the meantime.
    VALMigrationResultRemovalFailed = 5
};
