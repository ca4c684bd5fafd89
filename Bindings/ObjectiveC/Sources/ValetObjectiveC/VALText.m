/* SPDX-License-Identifier: Apache-2.0 */
#import "VALText.h"

#include <stdlib.h>

#import "VALMemory.h"

/// The pointer is volatile, so that the compiler does not remove the loop.
static void wipe(void *memory, size_t byteCount) {
    volatile unsigned char *byte = memory;
    while (byteCount-- > 0) *byte++ = 0;
}

/// Writes a code point; four bytes must be free.
static char *writeUTF8(char *next, uint32_t scalar) {
    if (scalar < 0x80) {
        *next++ = (char)scalar;
        return next;
    }
    if (scalar < 0x800) {
        *next++ = (char)(0xC0 | scalar >> 6);
    } else {
        if (scalar < 0x10000) {
            *next++ = (char)(0xE0 | scalar >> 12);
        } else {
            *next++ = (char)(0xF0 | scalar >> 18);
            *next++ = (char)(0x80 | (scalar >> 12 & 0x3F));
        }
        *next++ = (char)(0x80 | (scalar >> 6 & 0x3F));
    }
    *next++ = (char)(0x80 | (scalar & 0x3F));
    return next;
}

VALText VALTextMake(NSString *string) {
    VALText text = {NULL, [string length]};
    if (text.length == 0) return text;
    size_t unitCount = text.length;
    // A unit of UTF-16 is at most three bytes of UTF-8; the two units of a pair are four.
    unichar *units = calloc(unitCount, sizeof(unichar));
    char *bytes = calloc(unitCount, 3);
    if (units != NULL && bytes != NULL) {
        [string getCharacters:units range:NSMakeRange(0, unitCount)];
        char *next = bytes;
        for (size_t index = 0; index < unitCount; index++) {
            uint32_t scalar = units[index];
            bool isPair = (scalar & 0xFC00) == 0xD800 && index + 1 < unitCount && (units[index + 1] & 0xFC00) == 0xDC00;
            if (isPair) scalar = 0x10000 + ((scalar & 0x3FF) << 10) + (units[++index] & 0x3FF);
            next = writeUTF8(next, scalar);
        }
        text.bytes = bytes;
        text.length = (size_t)(next - bytes);
    } else {
        free(bytes);
    }
    if (units != NULL) wipe(units, unitCount * sizeof(unichar));
    free(units);
    return text;
}

void VALTextFree(VALText *text) {
    if (text->bytes != NULL) wipe(text->bytes, text->length);
    free(text->bytes);
    text->bytes = NULL;
    text->length = 0;
}

NSString *VALStringMake(const char *bytes, size_t length) {
    if (length == 0) return @"";
    unichar *prefixed = calloc(length + 1, sizeof(unichar));
    if (prefixed == NULL) return nil;
    prefixed[0] = ' ';
    unichar *units = prefixed + 1;
    size_t unitCount = 0;
    for (size_t index = 0; index < length;) {
        uint32_t scalar = (unsigned char)bytes[index++];
        // The first byte determines how many follow. The library returns only valid UTF-8, and nothing beyond the length is read in any case.
        int following = scalar < 0x80 ? 0 : scalar < 0xE0 ? 1 : scalar < 0xF0 ? 2 : 3;
        if (following > 0) scalar &= 0x3F >> following;
        for (; following > 0 && index < length; following--) scalar = scalar << 6 | ((unsigned char)bytes[index++] & 0x3F);
        if (scalar >= 0x10000) {
            units[unitCount++] = (unichar)(0xD800 | (scalar - 0x10000) >> 10);
            units[unitCount++] = (unichar)(0xDC00 | (scalar & 0x3FF));
        } else {
            units[unitCount++] = (unichar)scalar;
        }
    }
    NSString *string = VAL_AUTORELEASE([[NSString alloc] initWithCharacters:units length:unitCount]);
    if ([string length] != unitCount) {
        // GNUstep removes a byte order mark at the beginning.
        NSString *whole = VAL_AUTORELEASE([[NSString alloc] initWithCharacters:prefixed length:unitCount + 1]);
        string = [whole substringFromIndex:1];
    }
    wipe(units, unitCount * sizeof(unichar));
    free(prefixed);
    return string;
}
