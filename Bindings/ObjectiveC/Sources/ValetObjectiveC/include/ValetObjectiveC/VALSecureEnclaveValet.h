/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

#import <ValetObjectiveC/VALSecureEnclaveAccessControl.h>

@class VALValet;

NS_ASSUME_NONNULL_BEGIN

/// Stores values that require authentication for every read. Storing, checking, and removing show no prompt.
///
/// Methods that can fail return NO or nil and set an error, of `VALKeychainErrorDomain` unless another domain is named. A failed call changes
/// nothing. The error may be NULL.
@interface VALSecureEnclaveValet : NSObject {
  @private
    void *_handle;
    VALSecureEnclaveAccessControl _accessControl;
}

/// How a person must authenticate before a value can be read.
@property (nonatomic, readonly) VALSecureEnclaveAccessControl accessControl;

// MARK: Creating a valet

/// A valet for this program whose values can be read only after authentication.
///
/// @param identifier The name of the set of values.
/// @param accessControl How the person must authenticate.
/// @return The valet; nil for an empty identifier. Creating a valet does not access the keychain; `canAccessKeychain` tells whether it is accessible.
+ (nullable instancetype)valetWithIdentifier:(NSString *)identifier accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// A valet with authentication, shared by all programs that have the access group `appIDPrefix.sharedGroupIdentifier` among the `keychain-access-groups` of
/// their entitlements.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix. If the entitlements do not list it, each use is
///     `VALKeychainErrorMissingEntitlement`.
/// @param accessControl How the person must authenticate.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// A valet with authentication, shared by all programs that have the group `groupPrefix.sharedGroupIdentifier` among the
/// `com.apple.security.application-groups` of their entitlements.
///
/// @param groupPrefix "group"; on macOS the App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessControl How the person must authenticate.
/// @return The valet; nil for an empty group, or a prefix that this platform does not have.
+ (nullable instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// Class methods make valets.
- (instancetype)init __attribute__((unavailable("Class methods make valets")));
/// Class methods make valets.
+ (instancetype)new __attribute__((unavailable("Class methods make valets")));

// MARK: Reading and writing

/// Whether the keychain can be used now. Shows no prompt, and does not check whether the person can satisfy the access control.
///
/// @return YES if the keychain is accessible and a passcode is set.
- (BOOL)canAccessKeychain;

/// Stores bytes under a key. Replaces an existing value. Shows no prompt.
///
/// @param object The value. If it is empty, the error is `VALKeychainErrorEmptyValue`.
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure: `VALKeychainErrorCouldNotAccessKeychain` if no passcode is set.
/// @return YES if it is stored.
- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error;

/// Stores a string under a key, as UTF-8. Replaces an existing value. Shows no prompt.
///
/// @param string The value. If it is empty, the error is `VALKeychainErrorEmptyValue`.
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure: `VALValetErrorNotUnicode`, of `VALValetErrorDomain`, if a string cannot be encoded as UTF-8.
/// @return YES if it is stored.
- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error;

/// Asks the person, and reads the bytes stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param prompt The reason that the prompt shows; if empty, the prompt has the keychain's own words.
/// @param error The error on failure: `VALKeychainErrorItemNotFound` if there is no value, `VALKeychainErrorUserCancelled` if the person cancels or
///     cannot be authenticated, `VALKeychainErrorCouldNotAccessKeychain` if no prompt can be shown.
/// @return The value, or nil.
- (nullable NSData *)objectForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error;

/// Asks the person, and reads the string stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param prompt The reason that the prompt shows; if empty, the prompt has the keychain's own words.
/// @param error The error on failure, as for `objectForKey:withPrompt:error:`; bytes that are not UTF-8 are `VALKeychainErrorItemNotFound`.
/// @return The value, or nil.
- (nullable NSString *)stringForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error;

/// Asks the person in the keychain's own words, and reads the bytes stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure, as for `objectForKey:withPrompt:error:`.
/// @return The value, or nil.
- (nullable NSData *)objectForKey:(NSString *)key error:(NSError **)error;

/// Asks the person in the keychain's own words, and reads the string stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure, as for `stringForKey:withPrompt:error:`.
/// @return The value, or nil.
- (nullable NSString *)stringForKey:(NSString *)key error:(NSError **)error;

/// Whether there is a value under a key. Does not read the value, and shows no prompt.
///
/// @param key The key.
/// @return NO also if the keychain is inaccessible; `canAccessKeychain` distinguishes the two.
- (BOOL)containsObjectForKey:(NSString *)key;

/// Removes the value under a key. Succeeds if there is none. Shows no prompt.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure.
/// @return YES if there is no value under the key now.
- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error;

/// Removes all values; if it fails, none. Succeeds if there are none. Shows no prompt.
///
/// @param error The error on failure.
/// @return YES if there are no values now.
- (BOOL)removeAllObjectsAndReturnError:(NSError **)error;

// MARK: Migrating

/// Migrates existing items of the keychain into this valet: all matching items, or none.
///
/// All items are checked before the first is written. If writing or removing fails, all changes are undone. Writing shows no prompt.
///
/// @param query The items, as for `VALValet`.
/// @param removeOnCompletion Whether the items are removed from their source.
/// @param error The error on failure, of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if nothing matches.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates the values of a valet without prompts into this one: all values, or none.
///
/// @param valet The valet with the values.
/// @param removeOnCompletion Whether the values are removed from their source.
/// @param error The error on failure, of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if there are no values.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates the values of the single prompt valet with the same configuration. The person is asked once.
///
/// @param removeOnCompletion Whether the values are removed from their source.
/// @param error The error on failure, as for `migrateObjectsFrom:removeOnCompletion:error:`; also `VALKeychainErrorUserCancelled`.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFromSinglePromptSecureEnclaveValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

@end

NS_ASSUME_NONNULL_END
