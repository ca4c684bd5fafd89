/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALSecureEnclaveValet.h>

#import "VALMemory.h"
#import "VALQuery.h"
#import "VALResult.h"
#import "VALText.h"
#import "VALValet+Handle.h"

@implementation VALSecureEnclaveValet

#pragma mark Creating a valet

/// Takes ownership of a new handle; returns nil without one.
+ (instancetype)valetWithHandle:(valet_enclave *)handle accessControl:(VALSecureEnclaveAccessControl)accessControl {
    if (handle == NULL) return nil;
    return VAL_AUTORELEASE([[self alloc] initWithHandle:handle accessControl:accessControl]);
}

- (instancetype)initWithHandle:(valet_enclave *)handle accessControl:(VALSecureEnclaveAccessControl)accessControl {
    self = [super init];
    if (self != nil) {
        _handle = handle;
        _accessControl = accessControl;
    } else {
        valet_enclave_free(handle);
    }
    return self;
}

// Unavailable in the header. Where the compiler does not enforce that, returns nil.
- (instancetype)init {
    VAL_RELEASE(self);
    return nil;
}

- (void)dealloc {
    valet_enclave_free(_handle);
    VAL_SUPER_DEALLOC;
}

+ (instancetype)valetWithIdentifier:(NSString *)identifier accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(name, identifier);
    valet_enclave *handle = NULL;
    valet_enclave_create(name.bytes, name.length, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

+ (instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet_enclave *handle = NULL;
    valet_enclave_create_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

+ (instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(prefix, groupPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet_enclave *handle = NULL;
    valet_enclave_create_shared(
        valet_group_prefix_application_group, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

- (VALSecureEnclaveAccessControl)accessControl {
    return _accessControl;
}

#pragma mark Comparing and describing

- (BOOL)isEqual:(id)object {
    if (object == self) return YES;
    return [object isKindOfClass:[VALSecureEnclaveValet class]] && valet_enclave_is_equal(_handle, ((VALSecureEnclaveValet *)object)->_handle);
}

- (NSUInteger)hash {
    return (NSUInteger)valet_enclave_hash(_handle);
}

- (NSString *)description {
    char *text = NULL;
    size_t length = 0;
    NSString *description = VALTakeString(valet_enclave_describe(_handle, &text, &length), text, length, NULL);
    return description == nil ? [super description] : description;
}

#pragma mark Reading and writing

- (BOOL)canAccessKeychain {
    return valet_enclave_can_access(_handle);
}

- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_enclave_set(_handle, name.bytes, name.length, [object bytes], [object length]), error);
}

- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(value, string);
    return VALSucceeded(valet_enclave_set_string(_handle, name.bytes, name.length, value.bytes, value.length), error);
}

- (NSData *)objectForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(words, prompt);
    uint8_t *value = NULL;
    size_t length = 0;
    valet_status status = valet_enclave_get_with_prompt(_handle, name.bytes, name.length, words.bytes, words.length, &value, &length);
    return VALTakeData(status, value, length, error);
}

- (NSString *)stringForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(words, prompt);
    char *string = NULL;
    size_t length = 0;
    valet_status status = valet_enclave_get_string_with_prompt(_handle, name.bytes, name.length, words.bytes, words.length, &string, &length);
    return VALTakeString(status, string, length, error);
}

- (NSData *)objectForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    uint8_t *value = NULL;
    size_t length = 0;
    valet_status status = valet_enclave_get(_handle, name.bytes, name.length, &value, &length);
    return VALTakeData(status, value, length, error);
}

- (NSString *)stringForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    char *string = NULL;
    size_t length = 0;
    valet_status status = valet_enclave_get_string(_handle, name.bytes, name.length, &string, &length);
    return VALTakeString(status, string, length, error);
}

- (BOOL)containsObjectForKey:(NSString *)key {
    VAL_TEXT(name, key);
    bool isThere = false;
    return valet_enclave_contains(_handle, name.bytes, name.length, &isThere) == valet_success && isThere;
}

- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_enclave_remove(_handle, name.bytes, name.length), error);
}

- (BOOL)removeAllObjectsAndReturnError:(NSError **)error {
    return VALSucceeded(valet_enclave_remove_all(_handle), error);
}

#pragma mark Migrating

- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    VAL_QUERY(items, query);
    valet_status status = items.status;
    if (status == valet_success) status = valet_enclave_migrate_matching(_handle, items.entries, items.count, removeOnCompletion);
    return VALSucceeded(status, error);
}

- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_enclave_migrate_from(_handle, [valet handle], removeOnCompletion), error);
}

- (BOOL)migrateObjectsFromSinglePromptSecureEnclaveValetWithRemoveOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_enclave_migrate_from_single_prompt(_handle, removeOnCompletion), error);
}

@end
