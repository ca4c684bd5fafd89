/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CKeychainTestShims.h"

#include <stdint.h>
#include <string.h>

bool keychain_test_contains(const void *bytes, size_t byte_count, const void *sought, size_t sought_byte_count) {
    return memmem(bytes, byte_count, sought, sought_byte_count) != NULL;
}

/* The two bytes at a place, as an index. */
static inline size_t pair(const uint8_t *bytes) { return bytes[0] | (size_t)bytes[1] << 8; }

/* The search of Wu and Manber: the last two bytes of a window tell how far the window can move. Random values have few pairs of bytes in
   common with memory, so it mostly moves by 15 bytes, however many values there are. */
void keychain_test_find_each(
    const uint8_t *bytes, size_t byte_count, const uint8_t *sought, const size_t *sought_byte_counts, size_t sought_count, bool *found) {
    enum { width = 16 };
    uint8_t moves[1 << 16];
    memset(moves, width - 1, sizeof moves);
    const uint8_t *value = sought;
    for (size_t index = 0; index < sought_count; value += sought_byte_counts[index++]) {
        for (size_t place = 0; place + 1 < width; place++) {
            uint8_t *move = &moves[pair(value + place)];
            if (*move > width - 2 - place) *move = (uint8_t)(width - 2 - place);
        }
    }
    for (size_t start = 0; start + width <= byte_count;) {
        size_t move = moves[pair(bytes + start + width - 2)];
        if (move > 0) {
            start += move;
            continue;
        }
        value = sought;
        for (size_t index = 0; index < sought_count; value += sought_byte_counts[index++]) {
            size_t count = sought_byte_counts[index];
            if (count <= byte_count - start && memcmp(bytes + start, value, count) == 0) found[index] = true;
        }
        start++;
    }
}
