/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain `Valet.ValetError` of what neither `VALKeychainError` nor `VALMigrationResult` has a case for. The code is a `VALValetError`.
extern NSString *_Nonnull const VALValetErrorDomain;

/// What failed outside the keychain. The numbers are those of the interface for C.
typedef NS_ENUM(NSInteger, VALValetError) {
    /// An object is nil that must not be, or was made with `init`.
    VALValetErrorNilArgument = 201,
    /// A string holds half of a surrogate pair, so that it cannot be written as UTF-8.
    VALValetErrorNotUnicode = 203,
    /// There is no memory for the result.
    VALValetErrorNoMemory = 209,
    /// A block answered `+[VALMigratableKeyValuePairOutput preventMigration]`: nothing was migrated.
    VALValetErrorMigrationPrevented = 1000
};
