/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// The domain of errors of the keychain, `Valet.KeychainError`: as in Valet 4. The code is a `VALKeychainError`.
extern NSString *_Nonnull const VALKeychainErrorDomain;

/// An error of the keychain. The numbers are those of Swift's `KeychainError`.
typedef NS_ENUM(NSInteger, VALKeychainError) {
    /// The keychain could not be used: it is locked, damaged, missing its key, or refused the call. There may be a value nevertheless.
    VALKeychainErrorCouldNotAccessKeychain = 0,
    /// The person canceled or could not be authenticated.
    VALKeychainErrorUserCancelled = 1,
    /// There is no value for the key, or a string was requested and the bytes are not UTF-8.
    VALKeychainErrorItemNotFound = 2,
    /// The program's entitlements do not list the access group.
    VALKeychainErrorMissingEntitlement = 3,
    /// The key is empty, or nil.
    VALKeychainErrorEmptyKey = 4,
    /// The value is empty, or nil.
    VALKeychainErrorEmptyValue = 5
};
