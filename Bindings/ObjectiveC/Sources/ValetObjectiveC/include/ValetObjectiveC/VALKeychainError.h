/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain of errors of the keychain, `Valet.KeychainError`: the one that Valet 4 gives. The code is a `VALKeychainError`.
extern NSString *_Nonnull const VALKeychainErrorDomain;

/// What failed in the keychain. The numbers are those of Swift's `KeychainError`.
typedef NS_ENUM(NSInteger, VALKeychainError) {
    /// The keychain could not be used: it is locked, damaged, missing its key, or refused the call. It does not mean that there is no value.
    VALKeychainErrorCouldNotAccessKeychain = 0,
    /// The person cancelled, or could not show to be the person asked for.
    VALKeychainErrorUserCancelled = 1,
    /// There is no value for the key, or its bytes are not UTF-8 and a string was asked for.
    VALKeychainErrorItemNotFound = 2,
    /// The program's entitlements do not list the access group.
    VALKeychainErrorMissingEntitlement = 3,
    /// The key is empty, or nil.
    VALKeychainErrorEmptyKey = 4,
    /// The value is empty, or nil.
    VALKeychainErrorEmptyValue = 5
};
