/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

#import <ValetObjectiveC/VALAccessibility.h>
#import <ValetObjectiveC/VALCloudAccessibility.h>
#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

NS_ASSUME_NONNULL_BEGIN

/// Keeps the values of one sandbox in the keychain.
///
/// What a valet is made with decides who sees the values, and keeps them apart from those of every other valet. Two valets made in the same way
/// are equal, and see the same values.
///
/// Methods that can fail answer NO or nil, and then give an error: of `VALKeychainErrorDomain` where nothing else is said. What failed has changed
/// nothing. Whoever does not care gives NULL for the error.
@interface VALValet : NSObject {
  @private
    void *_handle;
    VALAccessibility _accessibility;
}

/// When the values can be read and written.
@property (nonatomic, readonly) VALAccessibility accessibility;

// MARK: Making a valet

/// A valet for this program on this device.
///
/// @param identifier Names the values.
/// @param accessibility When they can be read and written.
/// @return The valet; nil for an empty identifier. The keychain is not touched: whether it can be used, `canAccessKeychain` tells.
+ (nullable instancetype)valetWithIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility;

/// A valet whose values the person's other devices also have; where nothing brings them there, this device alone.
///
/// @param identifier Names the values.
/// @param accessibility When they can be read and written.
/// @return The valet; nil for an empty identifier.
+ (nullable instancetype)iCloudValetWithIdentifier:(NSString *)identifier accessibility:(VALCloudAccessibility)accessibility;

/// A valet shared by all programs that have the access group `appIDPrefix.sharedGroupIdentifier` among the `keychain-access-groups` of
/// their entitlements.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix. If the entitlements do not list it, each use is
///     `VALKeychainErrorMissingEntitlement`.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessibility:(VALAccessibility)accessibility;

/// A valet shared by all programs that have the group `groupPrefix.sharedGroupIdentifier` among the
/// `com.apple.security.application-groups` of their entitlements.
///
/// @param groupPrefix "group"; on macOS the App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty group, or a prefix that this platform does not have.
+ (nullable instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                                   sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                           accessibility:(VALAccessibility)accessibility;

/// A shared valet as `sharedGroupValetWithAppIDPrefix:sharedGroupIdentifier:accessibility:` gives, whose values other devices also have.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)iCloudValetWithAppIDPrefix:(NSString *)appIDPrefix
                              sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                      accessibility:(VALCloudAccessibility)accessibility;

/// A shared valet as `sharedGroupValetWithGroupPrefix:sharedGroupIdentifier:accessibility:` gives, whose values other devices also have.
///
/// @param groupPrefix "group"; on macOS the App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty group, or a prefix that this platform does not have.
+ (nullable instancetype)iCloudValetWithGroupPrefix:(NSString *)groupPrefix
                              sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                      accessibility:(VALCloudAccessibility)accessibility;

/// A valet whose identifier is the service of its items, word for word: for names that people are shown.
///
/// Nothing else keeps it apart from other valets and programs, so the identifier must be unique.
///
/// @param identifier The service.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty identifier.
+ (nullable instancetype)valetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility;

/// A valet as `valetWithExplicitlySetIdentifier:accessibility:` gives, whose values other devices also have.
///
/// @param identifier The service.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty identifier.
+ (nullable instancetype)iCloudValetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALCloudAccessibility)accessibility;

/// A shared valet whose group, without its prefix, is the service of its items, word for word.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param identifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)valetWithAppIDPrefix:(NSString *)appIDPrefix
           explicitlySetSharedGroupIdentifier:(NSString *)identifier
                                accessibility:(VALAccessibility)accessibility;

/// A valet as `valetWithAppIDPrefix:explicitlySetSharedGroupIdentifier:accessibility:` gives, whose values other devices also have.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param identifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)iCloudValetWithAppIDPrefix:(NSString *)appIDPrefix
                 explicitlySetSharedGroupIdentifier:(NSString *)identifier
                                      accessibility:(VALCloudAccessibility)accessibility;

/// Class methods make valets.
- (instancetype)init __attribute__((unavailable("Class methods make valets")));
/// Class methods make valets.
+ (instancetype)new __attribute__((unavailable("Class methods make valets")));

// MARK: Reading and writing

/// Whether values can be stored and read now. An item of its own is written and read for this; nobody is asked.
///
/// @return YES if the keychain is accessible.
- (BOOL)canAccessKeychain;

/// Stores bytes under a key. A value that was there is replaced at one stroke.
///
/// @param object The value; empty: `VALKeychainErrorEmptyValue`.
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed.
/// @return YES if it is stored.
- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error;

/// Reads the bytes stored under a key.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed; `VALKeychainErrorItemNotFound` if there is no value.
/// @return The value, or nil.
- (nullable NSData *)objectForKey:(NSString *)key error:(NSError **)error;

/// Whether there is a value under a key. It is not read.
///
/// @param key The key.
/// @return NO also when the keychain is inaccessible and it cannot be known; `canAccessKeychain` tells.
- (BOOL)containsObjectForKey:(NSString *)key;

/// Stores a string under a key, as UTF-8. A value that was there is replaced at one stroke.
///
/// @param string The value; empty: `VALKeychainErrorEmptyValue`.
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed; of `VALValetErrorDomain`, `VALValetErrorNotUnicode`, if a string cannot be written as UTF-8.
/// @return YES if it is stored.
- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error;

/// Reads the string stored under a key.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed; `VALKeychainErrorItemNotFound` if there is no value, or if its bytes are not UTF-8.
/// @return The value, or nil.
- (nullable NSString *)stringForKey:(NSString *)key error:(NSError **)error;

/// The keys of all values.
///
/// Two keys that Foundation calls equal although their UTF-8 differs are one in a set. GNUstep does so with a letter that has its accent in it and
/// one that is followed by its accent.
///
/// @param error Gets what failed.
/// @return The keys, none if there are no values; nil if it failed.
- (nullable NSSet<NSString *> *)allKeysWithError:(NSError **)error;

/// Removes the value under a key. That there is none is no failure.
///
/// @param key The key; empty: `VALKeychainErrorEmptyKey`.
/// @param error Gets what failed.
/// @return YES if there is no value under the key any more.
- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error;

/// Removes all values, or none if it fails. That there are none is no failure.
///
/// @param error Gets what failed.
/// @return YES if there are no values any more.
- (BOOL)removeAllObjectsAndReturnError:(NSError **)error;

// MARK: Migrating

/// Brings existing items of the keychain into this valet: all that match, or none.
///
/// Everything is checked before anything is written; if writing or removing fails, what was done is undone.
///
/// @param query Which items: the dictionary that `SecItemCopyMatching` takes, of the class of generic passwords. Names and values are those of
///     Apple's `kSec…` constants; where there is no Security framework, the interface for C has them, such as `valet_attribute_service`. Values are strings,
///     data, whole numbers, booleans and dates. Anything else, such as an `LAContext`, is `VALMigrationResultInvalidQuery`.
/// @param removeOnCompletion Whether the items are removed from where they were.
/// @param error Gets what failed: of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if nothing matches.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Brings the values of another valet into this one: all of them, or none.
///
/// @param valet Where the values are.
/// @param removeOnCompletion Whether they are removed from there.
/// @param error Gets what failed: of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if there are no values.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Brings what a block makes of existing items of the keychain into this valet: all or nothing. The items stay where they are.
///
/// @param query Which items, as for `migrateObjectsMatching:removeOnCompletion:error:`.
/// @param compactMap Makes the pair to store from each.
/// @param error Gets what failed: also `VALValetErrorMigrationPrevented`, of `VALValetErrorDomain`, if the block prevented it.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query
                    compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                         error:(NSError **)error;

/// Brings what a block makes of the values of another valet into this one: all or nothing. The values stay where they are.
///
/// @param valet Where the values are.
/// @param compactMap Makes the pair to store from each.
/// @param error Gets what failed: also `VALValetErrorMigrationPrevented`, of `VALValetErrorDomain`, if the block prevented it.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet
                compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                     error:(NSError **)error;

/// Brings the values that an earlier version of this valet kept with the withdrawn accessibility "always".
///
/// @param removeOnCompletion Whether they are removed from there.
/// @param error Gets what failed, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFromAlwaysAccessibleValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Brings the values that an earlier version of this valet kept with the withdrawn accessibility "always, this device only".
///
/// @param removeOnCompletion Whether they are removed from there.
/// @param error Gets what failed, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Brings the values that this valet kept on macOS 10.14 or earlier. On other platforms there is nothing to do.
///
/// @param error Gets what failed, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated, or there was nothing to do.
- (BOOL)migrateObjectsFromPreCatalinaAndReturnError:(NSError **)error;

@end

NS_ASSUME_NONNULL_END
