/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALSinglePromptSecureEnclaveValet.h>

#if VAL_HAS_SINGLE_PROMPT

#import "VALMemory.h"
#import "VALQuery.h"
#import "VALResult.h"
#import "VALText.h"
#import "VALValet+Handle.h"

@implementation VALSinglePromptSecureEnclaveValet

#pragma mark Creating a valet

/// Takes ownership of a new handle; returns nil without one.
+ (instancetype)valetWithHandle:(valet_single_prompt *)handle accessControl:(VALSecureEnclaveAccessControl)accessControl {
    if (handle == NULL) return nil;
    return VAL_AUTORELEASE([[self alloc] initWithHandle:handle accessControl:accessControl]);
}

- (instancetype)initWithHandle:(valet_single_prompt *)handle accessControl:(VALSecureEnclaveAccessControl)accessControl {
    self = [super init];
    if (self != nil) {
        _handle = handle;
        _accessControl = accessControl;
    } else {
        valet_single_prompt_free(handle);
    }
    return self;
}

// Unavailable in the header. Where the compiler does not enforce that, returns nil.
- (instancetype)init {
    VAL_RELEASE(self);
    return nil;
}

- (void)dealloc {
    valet_single_prompt_free(_handle);
    VAL_SUPER_DEALLOC;
}

+ (instancetype)valetWithIdentifier:(NSString *)identifier accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(name, identifier);
    valet_single_prompt *handle = NULL;
    valet_single_prompt_create(name.bytes, name.length, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

+ (instancetype)sharedGroupValetWithAppIDPrefix:(NSString *)appIDPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(prefix, appIDPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet_single_prompt *handle = NULL;
    valet_single_prompt_create_shared(
        valet_group_prefix_app_id, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

+ (instancetype)sharedGroupValetWithGroupPrefix:(NSString *)groupPrefix
                          sharedGroupIdentifier:(NSString *)sharedGroupIdentifier
                                  accessControl:(VALSecureEnclaveAccessControl)accessControl {
    VAL_TEXT(prefix, groupPrefix);
    VAL_TEXT(group, sharedGroupIdentifier);
    valet_single_prompt *handle = NULL;
    valet_single_prompt_create_shared(
        valet_group_prefix_application_group, prefix.bytes, prefix.length, group.bytes, group.length, NULL, 0, VALConstant(accessControl), &handle);
    return [self valetWithHandle:handle accessControl:accessControl];
}

- (VALSecureEnclaveAccessControl)accessControl {
    return _accessControl;
}

#pragma mark Comparing and describing

- (BOOL)isEqual:(id)object {
    if (object == self) return YES;
    return [object isKindOfClass:[VALSinglePromptSecureEnclaveValet class]] && valet_single_prompt_is_equal(_handle, ((VALSinglePromptSecureEnclaveValet *)object)->_handle);
}

- (NSUInteger)hash {
    return (NSUInteger)valet_single_prompt_hash(_handle);
}

- (NSString *)description {
    char *text = NULL;
    size_t length = 0;
    NSString *description = VALTakeString(valet_single_prompt_describe(_handle, &text, &length), text, length, NULL);
    return description == nil ? [super description] : description;
}

#pragma mark Reading and writing

- (BOOL)canAccessKeychain {
    return valet_single_prompt_can_access(_handle);
}

- (BOOL)setObject:(NSData *)object forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_single_prompt_set(_handle, name.bytes, name.length, [object bytes], [object length]), error);
}

- (BOOL)setString:(NSString *)string forKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(value, string);
    return VALSucceeded(valet_single_prompt_set_string(_handle, name.bytes, name.length, value.bytes, value.length), error);
}

- (NSData *)objectForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(words, prompt);
    uint8_t *value = NULL;
    size_t length = 0;
    valet_status status = valet_single_prompt_get_with_prompt(_handle, name.bytes, name.length, words.bytes, words.length, &value, &length);
    return VALTakeData(status, value, length, error);
}

- (NSString *)stringForKey:(NSString *)key withPrompt:(NSString *)prompt error:(NSError **)error {
    VAL_TEXT(name, key);
    VAL_TEXT(words, prompt);
    char *string = NULL;
    size_t length = 0;
    valet_status status = valet_single_prompt_get_string_with_prompt(_handle, name.bytes, name.length, words.bytes, words.length, &string, &length);
    return VALTakeString(status, string, length, error);
}

- (NSSet<NSString *> *)allKeysWithUserPrompt:(NSString *)userPrompt error:(NSError **)error {
    VAL_TEXT(words, userPrompt);
    NSMutableSet<NSString *> *set = [NSMutableSet set];
    VALKeys keys = {set, NO};
    valet_status status = valet_single_prompt_all_keys(_handle, words.bytes, words.length, VALAddKey, &keys);
    return VALTakeKeys(status, &keys, error);
}

- (void)requirePromptOnNextAccess {
    valet_single_prompt_require_prompt_on_next_access(_handle);
}

- (BOOL)containsObjectForKey:(NSString *)key {
    VAL_TEXT(name, key);
    bool isThere = false;
    return valet_single_prompt_contains(_handle, name.bytes, name.length, &isThere) == valet_success && isThere;
}

- (BOOL)removeObjectForKey:(NSString *)key error:(NSError **)error {
    VAL_TEXT(name, key);
    return VALSucceeded(valet_single_prompt_remove(_handle, name.bytes, name.length), error);
}

- (BOOL)removeAllObjectsAndReturnError:(NSError **)error {
    return VALSucceeded(valet_single_prompt_remove_all(_handle), error);
}

#pragma mark Migrating

- (BOOL)migrateObjectsMatching:(NSDictionary<NSString *, id> *)query removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    VAL_QUERY(items, query);
    valet_status status = items.status;
    if (status == valet_success) status = valet_single_prompt_migrate_matching(_handle, items.entries, items.count, removeOnCompletion);
    return VALSucceeded(status, error);
}

- (BOOL)migrateObjectsFrom:(VALValet *)valet removeOnCompletion:(BOOL)removeOnCompletion error:(NSError **)error {
    return VALSucceeded(valet_single_prompt_migrate_from(_handle, [valet handle], removeOnCompletion), error);
}

@end

#endif
