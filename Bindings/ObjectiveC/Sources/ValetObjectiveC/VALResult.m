/* SPDX-License-Identifier: Apache-2.0 */
#import "VALResult.h"

#include <string.h>

#import <ValetObjectiveC/VALKeychainError.h>
#import <ValetObjectiveC/VALMigrationResult.h>
#import "VALText.h"
#import <ValetObjectiveC/VALValetError.h>

NSString *const VALKeychainErrorDomain = @"Valet.KeychainError";
NSString *const VALMigrationResultDomain = @"Valet.MigrationError";
NSString *const VALValetErrorDomain = @"Valet.ValetError";

/// The error for a status. Its text contains no key and no value.
static NSError *errorFor(valet_status status) {
    NSString *domain = VALValetErrorDomain;
    NSInteger code = status;
    const char *text = valet_status_text(status);
    if (status >= valet_error_could_not_access_keychain && status <= valet_error_empty_value) {
        domain = VALKeychainErrorDomain;
        code = status - valet_error_could_not_access_keychain;
    } else if (status >= valet_error_invalid_query && status <= valet_error_removal_failed) {
        domain = VALMigrationResultDomain;
        code = status - valet_error_invalid_query;
    } else if (status == VALStatusPrevented) {
        text = "the migration was prevented by the block that was given to it";
    }
    NSString *description = VALStringMake(text, strlen(text));
    NSMutableDictionary *details = [NSMutableDictionary dictionary];
    if (description != nil) [details setObject:description forKey:NSLocalizedDescriptionKey];
    // Only these come from the keychain: another can have been found before a call.
    BOOL isOfKeychain = status == valet_error_could_not_access_keychain || status == valet_error_user_cancelled
        || status == valet_error_missing_entitlement || status == valet_error_removal_failed;
    const char *reason = isOfKeychain ? valet_failure_reason() : NULL;
    NSString *failureReason = reason == NULL ? nil : VALStringMake(reason, strlen(reason));
    if (failureReason != nil) [details setObject:failureReason forKey:NSLocalizedFailureReasonErrorKey];
    return [NSError errorWithDomain:domain code:code userInfo:details];
}

int32_t VALConstant(NSInteger value) {
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

BOOL VALSucceeded(valet_status status, NSError **error) {
    if (status == valet_success) return YES;
    if (error != NULL) *error = errorFor(status);
    return NO;
}

NSData *VALTakeData(valet_status status, uint8_t *bytes, size_t length, NSError **error) {
    NSData *data = status == valet_success ? [NSData dataWithBytes:bytes length:length] : nil;
    valet_buffer_free(bytes);
    if (status == valet_success && data == nil) status = valet_error_no_memory;
    return VALSucceeded(status, error) ? data : nil;
}

NSString *VALTakeString(valet_status status, char *bytes, size_t length, NSError **error) {
    NSString *string = status == valet_success ? VALStringMake(bytes, length) : nil;
    valet_buffer_free(bytes);
    if (status == valet_success && string == nil) status = valet_error_no_memory;
    return VALSucceeded(status, error) ? string : nil;
}

bool VALAddKey(void *context, const char *key, size_t length) {
    VALKeys *keys = context;
    NSString *string = VALStringMake(key, length);
    if (string != nil) [keys->keys addObject:string];
    if (string == nil) keys->isIncomplete = YES;
    return string != nil;
}

NSSet<NSString *> *VALTakeKeys(valet_status status, const VALKeys *keys, NSError **error) {
    if (status == valet_success && keys->isIncomplete) status = valet_error_no_memory;
    return VALSucceeded(status, error) ? keys->keys : nil;
}
