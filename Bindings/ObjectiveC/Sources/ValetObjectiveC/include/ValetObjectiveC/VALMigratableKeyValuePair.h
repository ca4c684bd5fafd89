/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A key and a value that a migration found, which a block receives.
@interface VALMigratableKeyValuePairInput : NSObject {
  @private
    id _key;
    NSData *_value;
}

/// The current key: an `NSString`, or an `NSData` or `NSNumber` of an item that another program stored.
@property (nonatomic, readonly) id key;

/// The value. It may be empty.
@property (nonatomic, readonly) NSData *value;

/// Migrations create these objects.
- (instancetype)init __attribute__((unavailable("Migrations make these")));
/// Migrations create these objects.
+ (instancetype)new __attribute__((unavailable("Migrations make these")));

@end

/// A key and a value to store, which a block returns.
@interface VALMigratableKeyValuePairOutput : NSObject {
  @private
    NSString *_key;
    NSData *_value;
    BOOL _preventsMigration;
}

/// The key to store the value under.
@property (nonatomic, readonly) NSString *key;

/// The value to store.
@property (nonatomic, readonly) NSData *value;

/// Bytes to store under a key. The migration, not this method, refuses empty keys and values.
///
/// @param key The key.
/// @param value The value.
- (instancetype)initWithKey:(NSString *)key value:(NSData *)value;

/// A string to store under a key. The migration, not this method, refuses empty keys and values.
///
/// @param key The key.
/// @param stringValue The value, stored as UTF-8. A string that cannot be encoded as UTF-8 becomes an empty value.
- (instancetype)initWithKey:(NSString *)key stringValue:(NSString *)stringValue;

/// The value that a block returns to end the migration. Nothing is migrated, and the migrating method returns NO with
/// `VALValetErrorMigrationPrevented`. To omit a single pair, a block returns nil.
///
/// @return The same object each time.
+ (VALMigratableKeyValuePairOutput *)preventMigration;

/// Use `initWithKey:value:`, `initWithKey:stringValue:` or `preventMigration`.
- (instancetype)init __attribute__((unavailable("Use initWithKey:value: or initWithKey:stringValue:")));
/// Use `initWithKey:value:`, `initWithKey:stringValue:` or `preventMigration`.
+ (instancetype)new __attribute__((unavailable("Use initWithKey:value: or initWithKey:stringValue:")));

@end

/// Returns the pair to store for a pair that a migration found, or nil to omit it.
///
/// It is called once for each pair, on the caller's thread, before anything is written. It may use
/// valets itself. An exception that it raises ends the migration, nothing is written, and the exception is raised again in the caller.
typedef VALMigratableKeyValuePairOutput *_Nullable (^VALMigratableKeyValuePairCompactMap)(VALMigratableKeyValuePairInput *input);

NS_ASSUME_NONNULL_END
