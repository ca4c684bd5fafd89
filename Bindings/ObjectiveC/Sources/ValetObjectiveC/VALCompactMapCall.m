/* SPDX-License-Identifier: Apache-2.0 */
#import "VALCompactMapCall.h"

#import "VALMemory.h"
#import "VALMigratableKeyValuePair+Internal.h"
#import "VALResult.h"
#import "VALText.h"

@implementation VALCompactMapCall

- (instancetype)initWithBlock:(VALMigratableKeyValuePairCompactMap)block {
    self = [super init];
    if (self != nil) _block = block;
    return self;
}

#if !__has_feature(objc_arc)
- (void)dealloc {
    [_exception release];
    [super dealloc];
}
#endif

- (void *)context {
    return (__bridge void *)self;
}

- (BOOL)finishWithStatus:(valet_status)status error:(NSError **)error {
    if (status == VALStatusException && _exception != nil) @throw _exception;
    return VALSucceeded(status, error);
}

- (void)setException:(id)exception {
    VAL_RELEASE(_exception);
    _exception = VAL_RETAIN(exception);
}

/// The key as a Foundation object.
static id keyOf(const valet_pair *pair) {
    switch (pair->key_type) {
        case valet_value_text: return VALStringMake(pair->key, pair->key_length);
        case valet_value_number: return [NSNumber numberWithLongLong:pair->key_number];
        default: return [NSData dataWithBytes:pair->key length:pair->key_length];
    }
}

- (valet_status)mapPair:(const valet_pair *)pair to:(valet_output *)output {
    id key = keyOf(pair);
    NSData *value = [NSData dataWithBytes:pair->value length:pair->value_length];
    if (key == nil || value == nil) return valet_error_no_memory;
    VALMigratableKeyValuePairInput *input = VAL_AUTORELEASE([[VALMigratableKeyValuePairInput alloc] initWithKey:key value:value]);
    VALMigratableKeyValuePairOutput *answer = _block(input);
    if (answer == nil) return valet_success;
    if ([answer preventsMigration]) return VALStatusPrevented;
    VAL_TEXT(newKey, [answer key]);
    return valet_output_set(output, newKey.bytes, newKey.length, [[answer value] bytes], [[answer value] length]);
}

@end

valet_status VALCompactMapCallBlock(void *context, const valet_pair *pair, valet_output *output) {
    VALCompactMapCall *call = (__bridge VALCompactMapCall *)context;
    valet_status status = VALStatusException;
    @autoreleasepool {
        @try {
            status = [call mapPair:pair to:output];
        } @catch (id exception) {
            [call setException:exception];
        }
    }
    return status;
}
