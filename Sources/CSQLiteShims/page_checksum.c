/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum itself; On-disk-format.md specifies it. */
#include "page_checksums.h"

#include <string.h>

/* "KCHNPAGE" and "KCHN SUM", so that a page of zeros is no valid one. */
#define FIRST_SEED UINT64_C(0x4B43484E50414745)
#define SECOND_SEED UINT64_C(0x4B43484E2053554D)

#define LANE_COUNT 4
#define WORD_COUNT ((KEYCHAIN_PAGE_BYTE_COUNT - KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT) / 4)
#define ROUND_COUNT (WORD_COUNT / LANE_COUNT)

_Static_assert(ROUND_COUNT * LANE_COUNT == WORD_COUNT, "the lanes end together");

static uint32_t little_endian(uint32_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(word);
#else
    return word;
#endif
}

static void store_little_endian(uint64_t number, uint8_t *bytes) {
    for (int index = 0; index < 8; index++) bytes[index] = (uint8_t)(number >> (8 * index));
}

void keychain_page_checksum(const uint8_t *page, uint64_t number, uint8_t *checksum) {
    /* Specified as: s1 += word, s2 += s1, word after word. The same in four lanes that do not wait for each other: the weight of a word in
       s2 is how many words follow, itself included, which is 4 times that of its round in its lane, less its lane. */
    uint64_t sums[LANE_COUNT] = {0}, weighted[LANE_COUNT] = {0};
    for (int round = 0; round < ROUND_COUNT; round++) {
        uint32_t words[LANE_COUNT];
        memcpy(words, page + round * (int)sizeof words, sizeof words);
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            sums[lane] += little_endian(words[lane]);
            weighted[lane] += sums[lane];
        }
    }
    uint64_t first = FIRST_SEED + number, second = SECOND_SEED + first * WORD_COUNT;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        first += sums[lane];
        second += weighted[lane] * LANE_COUNT - sums[lane] * (uint64_t)lane;
    }
    store_little_endian(first, checksum);
    store_little_endian(second, checksum + 8);
}
