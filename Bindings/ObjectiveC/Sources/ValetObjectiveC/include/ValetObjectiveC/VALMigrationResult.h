/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain of errors of migrations, `Valet.MigrationError`: as in Valet 4. The code is a `VALMigrationResult`.
extern NSString *_Nonnull const VALMigrationResultDomain;

/// Why a migration did not take place. The numbers are those of Swift's `MigrationError`; Objective-C has the older name.
typedef NS_ENUM(NSInteger, VALMigrationResult) {
    /// The query is empty, is not for generic passwords, contains a key that migrations set themselves, or contains an invalid value.
    VALMigrationResultInvalidQuery = 0,
    /// An item has no usable key, or an empty key.
    VALMigrationResultKeyToMigrateInvalid = 1,
    /// An item's value is empty.
    VALMigrationResultDataToMigrateInvalid = 2,
    /// Two items would have the same key.
    VALMigrationResultDuplicateKeyToMigrate = 3,
    /// The valet migrated into already has a value for a key.
    VALMigrationResultKeyToMigrateAlreadyExistsInValet = 4,
    /// A migrated item could not be removed from its source, or was changed there in the meantime.
    VALMigrationResultRemovalFailed = 5
};
