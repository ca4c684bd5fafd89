/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain `Valet.ValetError` of errors that are neither a `VALKeychainError` nor a `VALMigrationResult`. The code is a `VALValetError`.
extern NSString *_Nonnull const VALValetErrorDomain;

/// An error outside of the keychain. The numbers are those of the C interface.
typedef NS_ENUM(NSInteger, VALValetError) {
    /// An object is nil where none is allowed, or was created with `init`.
    VALValetErrorNilArgument = 201,
    /// A string contains half of a surrogate pair and cannot be encoded as UTF-8.
    VALValetErrorNotUnicode = 203,
    /// There is no memory for the result.
    VALValetErrorNoMemory = 209,
    /// A block returned `+[VALMigratableKeyValuePairOutput preventMigration]`: nothing was migrated.
    VALValetErrorMigrationPrevented = 1000
};
