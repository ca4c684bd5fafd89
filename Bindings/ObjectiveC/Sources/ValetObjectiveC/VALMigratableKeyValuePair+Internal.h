/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

NS_ASSUME_NONNULL_BEGIN

@interface VALMigratableKeyValuePairInput (Internal)

- (instancetype)initWithKey:(id)key value:(NSData *)value;

@end

@interface VALMigratableKeyValuePairOutput (Internal)

- (BOOL)preventsMigration;

@end

NS_ASSUME_NONNULL_END
