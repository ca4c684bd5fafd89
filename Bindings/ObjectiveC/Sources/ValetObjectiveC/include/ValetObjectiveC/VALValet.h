/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

#import <ValetObjectiveC/VALAccessibility.h>
#import <ValetObjectiveC/VALCloudAccessibility.h>
#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

NS_ASSUME_NONNULL_BEGIN

/// Stores the values of one sandbox in the keychain.
///
/// The configuration of a valet determines which programs can access its values, and separates them from the values of all other valets. Valets
/// with the same configuration are equal and have the same values.
///
/// Methods that can fail return NO or nil and set an error, of `VALKeychainErrorDomain` unless another domain is named. A failed call changes
/// nothing. The error may be NULL.
@interface VALValet : NSObject {
  @private
    void *_handle;
    VALAccessibility _accessibility;
}

/// When the values can be read and written.
@property (nonatomic, readonly) VALAccessibility accessibility;

// MARK: Creating a valet

/// A valet for this program on this device.
///
/// @param identifier The name of the set of values.
/// @param accessibility When they can be read and written.
/// @return The valet; nil for an empty identifier. Creating a valet does not access the keychain; `canAccessKeychain` tells whether it is accessible.
+ (nullable instancetype)valetWithIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility;

/// A valet whose values are synchronized to the person's other devices, on platforms with synchronization.
///
/// @param identifier The name of the set of values.
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

/// A shared valet as `sharedGroupValetWithAppIDPrefix:sharedGroupIdentifier:accessibility:` returns, with synchronized values.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)iCloudValetWithAppIDPrefix:(NSString *)appIDPrefix
                              sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                      accessibility:(VALCloudAccessibility)accessibility;

/// A shared valet as `sharedGroupValetWithGroupPrefix:sharedGroupIdentifier:accessibility:` returns, with synchronized values.
///
/// @param groupPrefix "group"; on macOS the App ID prefix of the maker.
/// @param sharedGroupIdentifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty group, or a prefix that this platform does not have.
+ (nullable instancetype)iCloudValetWithGroupPrefix:(NSString *)groupPrefix
                              sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                      accessibility:(VALCloudAccessibility)accessibility;

/// A valet whose identifier is exactly the service of its items, for names that people see.
///
/// Nothing else separates it from other valets and programs, so the identifier must be unique.
///
/// @param identifier The service.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty identifier.
+ (nullable instancetype)valetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility;

/// A valet as `valetWithExplicitlySetIdentifier:accessibility:` returns, with synchronized values.
///
/// @param identifier The service.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty identifier.
+ (nullable instancetype)iCloudValetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALCloudAccessibility)accessibility;

/// A shared valet whose group, without its prefix, is exactly the service of its items.
///
/// @param appIDPrefix The App ID prefix of the maker.
/// @param identifier The group without its prefix.
/// @param accessibility When the values can be read and written.
/// @return The valet; nil for an empty prefix or group.
+ (nullable instancetype)valetWithAppIDPrefix:(NSString *)appIDPrefix
           explicitlySetSharedGroupIdentifier:(NSString *)identifier
                                accessibility:(VALAccessibility)accessibility;

/// A valet as `valetWithAppIDPrefix:explicitlySetSharedGroupIdentifier:accessibility:` returns, with synchronized values.
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

/// Whether values can be stored and read now. Writes and reads an item of its own; shows no prompt.
///
/// @return YES if the keychain is accessible.
- (BOOL)canAccessKeychain;

/// Stores bytes under a key. Replaces an existing value atomically.
///
/// @param object The value. If it is empty, the error is `VALKeychainErrorEmptyValue`.
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure.
/// @return YES if it is stored.
- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error;

/// Reads the bytes stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure: `VALKeychainErrorItemNotFound` if there is no value.
/// @return The value, or nil.
- (nullable NSData *)objectForKey:(NSString *)key error:(NSError **)error;

/// Whether there is a value under a key. Does not read the value.
///
/// @param key The key.
/// @return NO also if the keychain is inaccessible; `canAccessKeychain` distinguishes the two.
- (BOOL)containsObjectForKey:(NSString *)key;

/// Stores a string under a key, as UTF-8. Replaces an existing value atomically.
///
/// @param string The value. If it is empty, the error is `VALKeychainErrorEmptyValue`.
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure: `VALValetErrorNotUnicode`, of `VALValetErrorDomain`, if a string cannot be encoded as UTF-8.
/// @return YES if it is stored.
- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error;

/// Reads the string stored under a key.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure: `VALKeychainErrorItemNotFound` if there is no value, or if its bytes are not UTF-8.
/// @return The value, or nil.
- (nullable NSString *)stringForKey:(NSString *)key error:(NSError **)error;

/// The keys of all values.
///
/// Keys that Foundation considers equal although their UTF-8 differs appear once in the set. GNUstep considers a letter with an accent equal to
/// the letter followed by a combining accent.
///
/// @param error The error on failure.
/// @return The keys, none if there are no values; nil if it failed.
- (nullable NSSet<NSString *> *)allKeysWithError:(NSError **)error;

/// Removes the value under a key. Succeeds if there is none.
///
/// @param key The key. If it is empty, the error is `VALKeychainErrorEmptyKey`.
/// @param error The error on failure.
/// @return YES if there is no value under the key now.
- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error;

/// Removes all values; if it fails, none. Succeeds if there are none.
///
/// @param error The error on failure.
/// @return YES if there are no values now.
- (BOOL)removeAllObjectsAndReturnError:(NSError **)error;

// MARK: Migrating

/// Migrates existing items of the keychain into this valet: all matching items, or none.
///
/// All items are checked before the first is written. If writing or removing fails, all changes are undone.
///
/// @param query The items: the dictionary that `SecItemCopyMatching` takes, of the class of generic passwords. Names and values are those of
///     Apple's `kSec…` constants; without a Security framework, the C interface has them, such as `valet_attribute_service`. Values are strings,
///     data, whole numbers, booleans and dates. Anything else, such as an `LAContext`, is `VALMigrationResultInvalidQuery`.
/// @param removeOnCompletion Whether the items are removed from their source.
/// @param error The error on failure, of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if nothing matches.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates the values of another valet into this one: all values, or none.
///
/// @param valet The valet with the values.
/// @param removeOnCompletion Whether the values are removed from their source.
/// @param error The error on failure, of `VALMigrationResultDomain` or `VALKeychainErrorDomain`; `VALKeychainErrorItemNotFound` if there are no values.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates existing items of the keychain, transformed by a block, into this valet: all or none. The items are kept.
///
/// @param query The items, as for `migrateObjectsMatching:removeOnCompletion:error:`.
/// @param compactMap Returns the pair to store for each.
/// @param error The error on failure: also `VALValetErrorMigrationPrevented`, of `VALValetErrorDomain`, if the block prevented the migration.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query
                    compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                         error:(NSError **)error;

/// Migrates the values of another valet, transformed by a block, into this one: all or none. The source keeps its values.
///
/// @param valet The valet with the values.
/// @param compactMap Returns the pair to store for each.
/// @param error The error on failure: also `VALValetErrorMigrationPrevented`, of `VALValetErrorDomain`, if the block prevented the migration.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFrom:(VALValet *)valet
                compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                     error:(NSError **)error;

/// Migrates the values that an earlier version of this valet kept with the withdrawn accessibility "always".
///
/// @param removeOnCompletion Whether the values are removed from their source.
/// @param error The error on failure, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFromAlwaysAccessibleValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates the values that an earlier version of this valet kept with the withdrawn accessibility "always, this device only".
///
/// @param removeOnCompletion Whether the values are removed from their source.
/// @param error The error on failure, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated.
- (BOOL)migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error;

/// Migrates the values that this valet kept on macOS 10.14 or earlier. On other platforms, does nothing.
///
/// @param error The error on failure, as for `migrateObjectsFrom:removeOnCompletion:error:`.
/// @return YES if all were migrated, or there was nothing to do.
- (BOOL)migrateObjectsFromPreCatalinaAndReturnError:(NSError **)error;

@end

NS_ASSUME_NONNULL_END
