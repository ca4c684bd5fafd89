/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALValet.h>

#include <valet.h>

NS_ASSUME_NONNULL_BEGIN

@interface VALValet (Handle)

/// The handle. The caller keeps the valet while it uses the handle.
- (nullable valet *)handle __attribute__((objc_returns_inner_pointer));

@end

NS_ASSUME_NONNULL_END
