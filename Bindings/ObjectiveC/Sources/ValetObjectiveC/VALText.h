/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A string as UTF-8, in memory that is wiped when it is freed.
///
/// Half of a surrogate pair becomes three bytes that are not UTF-8, which the library refuses. If memory cannot be allocated, the bytes are NULL and
/// the length is not 0, which the library refuses too.
typedef struct {
    char *_Nullable bytes;
    size_t length;
} VALText;

/// The text of a string; nil becomes empty.
VALText VALTextMake(NSString *_Nullable string);

/// Wipes and frees a text, which is empty afterwards.
void VALTextFree(VALText *text);

/// Declares a text that is freed when its scope ends.
#define VAL_TEXT(name, string) __attribute__((cleanup(VALTextFree))) VALText name = VALTextMake(string)

/// The string of UTF-8 bytes.
///
/// Foundation's own initializers differ: some drop a byte order mark, which is part of a value or key like any other character.
///
/// @return Nil if memory cannot be allocated.
NSString *_Nullable VALStringMake(const char *_Nullable bytes, size_t length);

NS_ASSUME_NONNULL_END
