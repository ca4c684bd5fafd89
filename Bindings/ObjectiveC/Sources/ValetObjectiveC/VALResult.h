/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

NS_ASSUME_NONNULL_BEGIN

/// What the callback for a block answers if the block prevents the migration.
static const valet_status VALStatusPrevented = valet_status_first_of_caller;
/// What it answers if the block raised an exception.
static const valet_status VALStatusException = valet_status_first_of_caller + 1;

/// A constant as the interface for C has it; what does not fit is none of its constants.
int32_t VALConstant(NSInteger value);

/// Whether a call succeeded; if not, the error says why.
BOOL VALSucceeded(valet_status status, NSError **error);

/// The bytes that a call gave, whose buffer is freed; nil and an error if it failed.
NSData *_Nullable VALTakeData(valet_status status, uint8_t *_Nullable bytes, size_t length, NSError **error);

/// The string that a call gave, whose buffer is freed; nil and an error if it failed.
NSString *_Nullable VALTakeString(valet_status status, char *_Nullable bytes, size_t length, NSError **error);

/// Keys that are being read.
typedef struct {
    __unsafe_unretained NSMutableSet<NSString *> *keys;
    /// Whether there was no memory for one of them.
    BOOL isIncomplete;
} VALKeys;

/// The keys that a call gave; nil and an error if it failed.
NSSet<NSString *> *_Nullable VALTakeKeys(valet_status status, const VALKeys *keys, NSError **error);

/// Adds a key to the `VALKeys` that are the context.
bool VALAddKey(void *_Nullable context, const char *_Nullable key, size_t length);

NS_ASSUME_NONNULL_END
