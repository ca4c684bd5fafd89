/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

#import <ValetObjectiveC/VALPlatform.h>
#import <ValetObjectiveC/VALSecureEnclaveAccessControl.h>

#if VAL_HAS_SINGLE_PROMPT

@class VALValet;

NS_ASSUME_NONNULL_BEGIN

/// Keeps values that a person has to release once: the first read asks, later ones with an equal valet do not, until
/// `requirePromptOnNextAccess`, or until the answer has run out, or until no such valet is left. Storing, looking and removing ask nobody.
///
/// Methods that can fail answer NO or nil, and then give an error: of `VALKeychainErrorDomain` where nothing else is said. What failed has changed
/// nothing. Whoever does not care gives NULL for the error.
@interface VALSinglePromptSecureEnclaveValet : NSObject {
  @private
    void *_handle;
    VALSecureEnclaveAccessControl _accessControl;
}

/// What the person must do before a value can be read.
@property (nonatomic, readonly) VALSecureEnclaveAccessControl accessControl;

// MARK: Making a valet

/// A valet for this program whose values a person has to release.
///
/// @param identifier Names the values.
/// @param accessControl What the person must do.
/// @return The valet; nil for an empty identifier. The keychain is not touched: whether it can be used, `canAccessKeychain` tells.
+ (nullable instancetype)valetWithIdentifier:(NSString *)identifier accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// Such a valet shared by all programs that have the access group `appIDPrefix.sharedGroupIdentifier` among the `keychain-access-groups` of
/// their entitlements.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix. If the entitlements do not list it, each use is
///     `VALKeychainErrorMissingEntitlement`.
/// @param accessControl What the person must do.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// Such a valet shared by all programs that have the group `groupPrefix.sharedGroupIdentifier` among the
/// `com.apple.security.application-groups` of their entitlements.
///
/// @param groupPrefix "group"; on macOS the App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessControl What the person must do.
/// @return The valet; nil for an empty group, or a prefix that this platform does not have.
+ (nullable instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessControl:(VALSecureEnclaveAccessControl)accessControl;

/// Class methods make valets.
- (instancetype)init __attribute__((unavailable("Class methods make valets")));
/// Class methods make valets.
+ (instancetype)new __attribute__((unavailable("Class methods make valets")));

// MARK: Reading and writing

/// Whether values can be stored now, and read if the person agrees. Nobody is asked.
///
/// @return YES if the keychain is accessible and a passcode is set.
- (BOOL)canAccessKeychain;

/// Stores bytes under a key. A value that was there is replaced. Nobody is asked.
///
/// @param object The value; empty: `VALKeychainErrorEmptyValue`.
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed; `VALKeychainErrorCouldNotAccessKeychain` if no passcode is set.
/// @return YES if it is stored.
- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error;

/// Stores a string under a key, as UTF-8. A value that was there is replaced. Nobody is asked.
///
/// @param string The value; empty: `VALKeychainErrorEmptyValue`.
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed; of `VALValetErrorDomain`, `VALValetErrorNotUnicode`, if a string cannot be written as UTF-8.
/// @return YES if it is stored.
- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error;

/// Asks the person unless that was done before, and reads the bytes stored under a key.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param prompt What the person is told the value is for; empty leaves the words to the keychain.
/// @param error Gets what failed; `VALKeychainErrorItemNotFound` if there is no value, `VALKeychainErrorUserCancelled` if the person does not want to or
///     could not show to be the right one, `VALKeychainErrorCouldNotAccessKeychain` if there is nobody to ask.
/// @return The value, or nil.
- (nullable NSData *)objectForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error;

/// Asks the person unless that was done before, and reads the string stored under a key.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param prompt What the person is told the value is for; empty leaves the words to the keychain.
/// @param error Gets what failed, as for `objectForKey:withPrompt:error:`; bytes that are not UTF-8 are `VALKeychainErrorItemNotFound`.
/// @return The value, or nil.
- (nullable NSString *)stringForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error;

/// The keys of all values. Asks the person unless that was done before, or there are no values.
///
/// @param userPrompt What the person is told it is for; empty leaves the words to the keychain.
/// @param error Gets what failed, as for `objectForKey:withPrompt:error:`.
/// @return The keys; nil if it failed.
- (nullable NSSet<NSString *> *)allKeysWithUserPrompt:(NSString *)userPrompt error:(NSError **)error;

/// Makes the next call that reads ask the person again. A call that has begun goes on with the answer it has, or waits for.
- (void)requirePromptOnNextAccess;

/// Whether there is a value under a key. It is not read, and nobody is asked.
///
/// @param key The key.
/// @return NO also when the keychain is inaccessible and it cannot be known; `canAccessKeychain` tells.
- (BOOL)containsObjectForKey:(NSString *)key;

/// Removes the value under a key. That there is none is no failure. Nobody is asked.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed.
/// @return YES if there is no value under the key any more.
- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error;

/// Removes all values, or none if it fails. That there are none is no failure. Nobody is asked.
///
/// @param error Gets what failed.
/// @return YES if there are no values any more.
- (BOOL)removeAllObjectsAndReturnError:(NSError **)error;

// MARK: Migrating

/// Brings existing items of the keychain into this valet: all that match, or none.
///
/// Everything is checked before anything is written; if writing or removing fails, what was done is undone. Writing asks nobody.
///
/// @param query Which items, as for `VALValet`.
/// @param removeOnCompletion Whether the items are removed from where they were.
/// @param error Gets what failed: of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if nothing matches.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Brings the values of a valet that asks nobody into this one: all of them, or none.
///
/// @param valet Where the values are.
/// @param removeOnCompletion Whether they are removed from there.
/// @param error Gets what failed: of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if there are no values.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

@end

NS_ASSUME_NONNULL_END

#endif
