/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

#import <ValetObjectiveC/VALMigratableKeyValuePair.h>

NS_ASSUME_NONNULL_BEGIN

/// A block that is called through the C interface, and the exception it raised, which must not pass through C code.
@interface VALCompactMapCall : NSObject {
  @private
    __unsafe_unretained VALMigratableKeyValuePairCompactMap _block;
    id _exception;
}

/// Stores a block, which must outlive this value.
- (instancetype)initWithBlock:(VALMigratableKeyValuePairCompactMap)block;

/// The context for the migrating functions.
- (void *)context;

/// Raises the exception of the block, if any; otherwise returns whether the migration succeeded.
- (BOOL)finishWithStatus:(valet_status)status error:(NSError **)error;

@end

/// Calls the block of the `VALCompactMapCall` that is the context.
valet_status VALCompactMapCallBlock(void *_Nullable context, const valet_pair *_Nullable pair, valet_output *_Nullable output);

NS_ASSUME_NONNULL_END
