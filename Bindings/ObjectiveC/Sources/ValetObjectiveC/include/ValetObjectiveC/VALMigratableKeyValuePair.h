/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A key and a value that a migration found, as a block is given it.
@interface VALMigratableKeyValuePairInput : NSObject {
  @private
    id _key;
    NSData *_value;
}

/// What the value is stored under now: an `NSString`, or an `NSData` or `NSNumber` of an item that another program stored.
@property (nonatomic, readonly) id key;

/// The value. It may be empty.
@property (nonatomic, readonly) NSData *value;

/// Migrations make these.
- (instancetype)init __attribute__((unavailable("Migrations make these")));
/// Migrations make these.
+ (instancetype)new __attribute__((unavailable("Migrations make these")));

@end

/// A key and a value to be stored, as a block answers it.
@interface VALMigratableKeyValuePairOutput : NSObject {
  @private
    NSString *_key;
    NSData *_value;
    BOOL _preventsMigration;
}

/// What the value is to be stored under.
@property (nonatomic, readonly) NSString *key;

/// The value to be stored.
@property (nonatomic, readonly) NSData *value;

/// Bytes to be stored under a key. That one of them is empty is refused by the migration, not here.
///
/// @param key The key.
/// @param value The value.
- (instancetype)initWithKey:(NSString *)key value:(NSData *)value;

/// A string to be stored under a key. That one of them is empty is refused by the migration, not here.
///
/// @param key The key.
/// @param stringValue The value, stored as UTF-8. A string that cannot be written as UTF-8 gives an empty value.
- (instancetype)initWithKey:(NSString *)key stringValue:(NSString *)stringValue;

/// What a block answers to end the migration: nothing is migrated, and the method that migrates answers NO with
/// `VALValetErrorMigrationPrevented`. To leave out one pair alone, a block answers nil.
///
/// @return The same object each time.
+ (VALMigratableKeyValuePairOutput *)preventMigration;

/// Use `initWithKey:value:`, `initWithKey:stringValue:` or `preventMigration`.
- (instancetype)init __attribute__((unavailable("Use initWithKey:value: or initWithKey:stringValue:")));
/// Use `initWithKey:value:`, `initWithKey:stringValue:` or `preventMigration`.
+ (instancetype)new __attribute__((unavailable("Use initWithKey:value: or initWithKey:stringValue:")));

@end

/// Makes the pair to store from a pair that a migration found. Nil leaves the pair out.
///
/// It is called before the method that migrates returns, in the same thread, once for each pair, before anything is written. It may use
/// valets itself. An exception that it raises ends the migration with nothing written, and goes on to whoever called the method.
typedef VALMigratableKeyValuePairOutput *_Nullable (^VALMigratableKeyValuePairCompactMap)(VALMigratableKeyValuePairInput *input);

NS_ASSUME_NONNULL_END
