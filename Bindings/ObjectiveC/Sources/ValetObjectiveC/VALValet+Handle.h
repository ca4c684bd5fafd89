/* SPDX-License-Identifier: Apache-2.0 */
#import <ValetObjectiveC/VALValet.h>

#include <valet.h>

NS_ASSUME_NONNULL_BEGIN

@interface VALValet (Handle)

/// The handle. The valet is kept while it is used.
- (nullable valet *)handle __attribute__((objc_returns_inner_pointer));

@end

NS_ASSUME_NONNULL_END
