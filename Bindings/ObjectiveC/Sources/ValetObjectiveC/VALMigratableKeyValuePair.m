/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

#import "VALMemory.h"
#import "VALMigratableKeyValuePair+Internal.h"
#import "VALText.h"

@implementation VALMigratableKeyValuePairInput

- (instancetype)initWithKey:(id)key value:(NSData *)value {
    self = [super init];
    if (self != nil) {
        _key = VAL_RETAIN(key);
        _value = VAL_RETAIN(value);
    }
    return self;
}

#if !__has_feature(objc_arc)
- (void)dealloc {
    [_key release];
    [_value release];
    [super dealloc];
}
#endif

- (id)key {
    return _key;
}

- (NSData *)value {
    return _value;
}

@end

@implementation VALMigratableKeyValuePairOutput

- (instancetype)initWithKey:(NSString *)key value:(NSData *)value preventsMigration:(BOOL)preventsMigration {
    self = [super init];
    if (self != nil) {
        _key = [key copy];
        _value = [value copy];
        _preventsMigration = preventsMigration;
    }
    return self;
}

- (instancetype)initWithKey:(NSString *)key value:(NSData *)value {
    return [self initWithKey:key value:value preventsMigration:NO];
}

- (instancetype)initWithKey:(NSString *)key stringValue:(NSString *)stringValue {
    NSData *value = [stringValue dataUsingEncoding:NSUTF8StringEncoding];
    return [self initWithKey:key value:value == nil ? [NSData data] : value preventsMigration:NO];
}

+ (VALMigratableKeyValuePairOutput *)preventMigration {
    static VALMigratableKeyValuePairOutput *prevented = nil;
    @synchronized([VALMigratableKeyValuePairOutput class]) {
        if (prevented == nil) prevented = [[VALMigratableKeyValuePairOutput alloc] initWithKey:@"" value:[NSData data] preventsMigration:YES];
    }
    return prevented;
}

#if !__has_feature(objc_arc)
- (void)dealloc {
    [_key release];
    [_value release];
    [super dealloc];
}
#endif

- (NSString *)key {
    return _key;
}

- (NSData *)value {
    return _value;
}

- (BOOL)preventsMigration {
    return _preventsMigration;
}

@end
