/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

NS_ASSUME_NONNULL_BEGIN

/// A block on its way through the interface for C, and the exception it raised, which may not go that way.
@interface VALCompactMapCall : NSObject {
  @private
    __unsafe_unretained VALMigratableKeyValuePairCompactMap _block;
    id _exception;
}

/// Holds a block, which must outlive it.
- (instancetype)initWithBlock:(VALMigratableKeyValuePairCompactMap)block;

/// What migrating functions are given as context.
- (void *)context;

/// Raises what the block raised; else tells how the migration ended.
- (BOOL)finishWithStatus:(valet_status)status error:(NSError **)error;

@end

/// Calls the block of the `VALCompactMapCall` that is the context.
valet_status VALCompactMapCallBlock(void *_Nullable context, const valet_pair *_Nullable pair, valet_output *_Nullable output);

NS_ASSUME_NONNULL_END
