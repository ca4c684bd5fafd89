/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

NS_ASSUME_NONNULL_BEGIN

/// The callback's return value if the block prevents the migration.
static const valet_status VALStatusPrevented = valet_status_first_of_caller;
/// The callback's return value if the block raised an exception.
static const valet_status VALStatusException = valet_status_first_of_caller + 1;

/// The constant of the C interface for a value. A value out of range becomes an invalid constant.
int32_t VALConstant(NSInteger value);

/// Whether a call succeeded; if not, sets the error.
BOOL VALSucceeded(valet_status status, NSError **error);

/// The bytes that a call returned, whose buffer is freed; nil and an error if it failed.
NSData *_Nullable VALTakeData(valet_status status, uint8_t *_Nullable bytes, size_t length, NSError **error);

/// The string that a call returned, whose buffer is freed; nil and an error if it failed.
NSString *_Nullable VALTakeString(valet_status status, char *_Nullable bytes, size_t length, NSError **error);

/// The keys read so far.
typedef struct {
    __unsafe_unretained NSMutableSet<NSString *> *keys;
    /// Whether memory for a key could not be allocated.
    BOOL isIncomplete;
} VALKeys;

/// The keys that a call returned; nil and an error if it failed.
NSSet<NSString *> *_Nullable VALTakeKeys(valet_status status, const VALKeys *keys, NSError **error);

/// Adds a key to the `VALKeys` in the context.
bool VALAddKey(void *_Nullable context, const char *_Nullable key, size_t length);

NS_ASSUME_NONNULL_END
