/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALValet.h>

#import "VALCompactMapCall.h"
#import "VALMemory.h"
#import "VALQuery.h"
#import "VALResult.h"
#import "VALText.h"
#import "VALValet+Handle.h"

@implementation VALValet

#pragma mark Creating a valet

/// Takes ownership of a new handle; returns nil without one.
+ (instancetype)valetWithHandle:(valet *)handle accessibility:(VALAccessibility)accessibility {
    if (handle == NULL) return nil;
    return VAL_AUTORELEASE([[self alloc] initWithHandle:handle accessibility:accessibility]);
}

- (instancetype)initWithHandle:(valet *)handle accessibility:(VALAccessibility)accessibility {
    self = [super init];
    if (self != nil) {
        _handle = handle;
        _accessibility = accessibility;
    } else {
        valet_free(handle);
    }
    return self;
}

// Unavailable in the header. Where the compiler does not enforce that, returns nil.
- (instancetype)init {
    VAL_RELEASE(self);
    return nil;
}

- (void)dealloc {
    valet_free(_handle);
    VAL_SUPER_DEALLOC;
}

+ (instancetype)valetWithIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility {
    VAL_TEXT(name, identifier);
    valet *handle = NULL;
    valet_create(name.bytes, name.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)iCloudValetWithIdentifier:(NSString *)identifier accessibility:(VALCloudAccessibility)accessibility {
    VAL_TEXT(name, identifier);
    valet *handle = NULL;
    valet_create_icloud(name.bytes, name.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)valetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALAccessibility)accessibility {
    VAL_TEXT(name, identifier);
    valet *handle = NULL;
    valet_create_explicit(name.bytes, name.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)iCloudValetWithExplicitlySetIdentifier:(NSString *)identifier accessibility:(VALCloudAccessibility)accessibility {
    VAL_TEXT(name, identifier);
    valet *handle = NULL;
    valet_create_icloud_explicit(name.bytes, name.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessibility:(VALAccessibility)accessibility {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet *handle = NULL;
    valet_create_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessibility:(VALAccessibility)accessibility {
    VAL_TEXT(prefix, groupPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet *handle = NULL;
    valet_create_shared(
        valet_group_prefix_application_group, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)iCloudValetWithAppIDPrefix:(NSString *)appIDPrefix
                     sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                             accessibility:(VALCloudAccessibility)accessibility {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet *handle = NULL;
    valet_create_icloud_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)iCloudValetWithGroupPrefix:(NSString *)groupPrefix
                     sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                             accessibility:(VALCloudAccessibility)accessibility {
    VAL_TEXT(prefix, groupPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet *handle = NULL;
    valet_create_icloud_shared(
        valet_group_prefix_application_group, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)valetWithAppIDPrefix:(NSString *)appIDPrefix
  explicitlySetSharedGroupIdentifier:(NSString *)identifier
                       accessibility:(VALAccessibility)accessibility {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, identifier);
    valet *handle = NULL;
    valet_create_explicit_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

+ (instancetype)iCloudValetWithAppIDPrefix:(NSString *)appIDPrefix
        explicitlySetSharedGroupIdentifier:(NSString *)identifier
                             accessibility:(VALCloudAccessibility)accessibility {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, identifier);
    valet *handle = NULL;
    valet_create_icloud_explicit_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, VALConstant(accessibility), &handle);
    return [self valetWithHandle:handle accessibility:(VALAccessibility)accessibility];
}

- (valet *)handle {
    return _handle;
}

- (VALAccessibility)accessibility {
    return _accessibility;
}

#pragma mark Comparing and describing

- (BOOL)isEqual:(id)object {
    if (object == self) return YES;
    return [object isKindOfClass:[VALValet class]] && valet_is_equal(_handle, ((VALValet *)object)->_handle);
}

- (NSUInteger)hash {
    return (NSUInteger)valet_hash(_handle);
}

- (NSString *)description {
    char *text = NULL;
    size_t length = 0;
    NSString *description = VALTakeString(valet_describe(_handle, &text, &length), text, length, NULL);
    return description == nil ? [super description] : description;
}

#pragma mark Reading and writing

- (BOOL)canAccessKeychain {
    return valet_can_access(_handle);
}

- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_set(_handle, name.bytes, name.length, [object bytes], [object length]), error);
}

- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(value, string);
    return VALSucceeded(valet_set_string(_handle, name.bytes, name.length, value.bytes, value.length), error);
}

- (NSData *)objectForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    uint8_t *value = NULL;
    size_t length = 0;
    valet_status status = valet_get(_handle, name.bytes, name.length, &value, &length);
    return VALTakeData(status, value, length, error);
}

- (NSString *)stringForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    char *string = NULL;
    size_t length = 0;
    valet_status status = valet_get_string(_handle, name.bytes, name.length, &string, &length);
    return VALTakeString(status, string, length, error);
}

- (NSSet<NSString *> *)allKeysWithError:(NSError **)error {
    NSMutableSet<NSString *> *set = [NSMutableSet set];
    VALKeys keys = {set, NO};
    valet_status status = valet_all_keys(_handle, VALAddKey, &keys);
    return VALTakeKeys(status, &keys, error);
}

- (BOOL)containsObjectForKey:(NSString *)key {
    VAL_TEXT(name, key);
    bool isThere = false;
    return valet_contains(_handle, name.bytes, name.length, &isThere) == valet_success && isThere;
}

- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_remove(_handle, name.bytes, name.length), error);
}

- (BOOL)removeAllObjectsAndReturnError:(NSError **)error {
    return VALSucceeded(valet_remove_all(_handle), error);
}

#pragma mark Migrating

- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    VAL_QUERY(items, query);
    valet_status status = items.status;
    if (status == valet_success) status = valet_migrate_matching(_handle, items.entries, items.count, removeOnCompletion);
    return VALSucceeded(status, error);
}

- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_migrate_from(_handle, [valet handle], removeOnCompletion), error);
}

- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query
                    compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                         error:(NSError **)error {
    VAL_QUERY(items, query);
    VALCompactMapCall *call = VAL_AUTORELEASE([[VALCompactMapCall alloc] initWithBlock:compactMap]);
    valet_status status = compactMap == nil ? valet_error_null_argument : items.status;
    if (status == valet_success) {
        status = valet_migrate_matching_with_map(_handle, items.entries, items.count, VALCompactMapCallBlock, [call context]);
    }
    return [call finishWithStatus:status error:error];
}

- (BOOL)migrateObjectsFrom:(VALValet *)valet
                compactMap:(__attribute__((noescape)) VALMigratableKeyValuePairCompactMap)compactMap
                     error:(NSError **)error {
    VALCompactMapCall *call = VAL_AUTORELEASE([[VALCompactMapCall alloc] initWithBlock:compactMap]);
    valet_status status = valet_error_null_argument;
    if (compactMap != nil) status = valet_migrate_from_with_map(_handle, [valet handle], VALCompactMapCallBlock, [call context]);
    return [call finishWithStatus:status error:error];
}

- (BOOL)migrateObjectsFromAlwaysAccessibleValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_migrate_from_always_accessible(_handle, removeOnCompletion), error);
}

- (BOOL)migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_migrate_from_always_accessible_this_device_only(_handle, removeOnCompletion), error);
}

- (BOOL)migrateObjectsFromPreCatalinaAndReturnError:(NSError **)error {
    return VALSucceeded(valet_migrate_from_pre_catalina(_handle), error);
}

@end
