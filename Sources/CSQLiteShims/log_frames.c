/* SPDX-License-Identifier: Apache-2.0 */
#include "log_frames.h"

#include <string.h>

/* Each frame bears the sum over the frames before it and itself, so it can be told from its neighbour's whether it is what was written. */
typedef struct {
    uint32_t first, second;
} wal_checksum;

static wal_checksum stored_sum(const uint8_t *bytes) {
    uint32_t words[2];
    memcpy(words, bytes, sizeof words);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (wal_checksum){__builtin_bswap32(words[0]), __builtin_bswap32(words[1])};
#else
    return (wal_checksum){words[0], words[1]};
#endif
}

static bool are_equal(wal_checksum left, wal_checksum right) { return left.first == right.first && left.second == right.second; }

/* The words are in the order of the machine that began the file. */
static wal_checksum add(wal_checksum sum, const uint8_t *bytes, int byte_count, bool is_swapped) {
    for (int offset = 0; offset < byte_count; offset += 8) {
        uint32_t words[2];
        memcpy(words, bytes + offset, sizeof words);
        sum.first += (is_swapped ? __builtin_bswap32(words[0]) : words[0]) + sum.second;
        sum.second += (is_swapped ? __builtin_bswap32(words[1]) : words[1]) + sum.first;
    }
    return sum;
}

static wal_checksum add_frame(wal_checksum sum, const uint8_t *frame, bool is_swapped) {
    sum = add(sum, frame, 8, is_swapped);
    return add(sum, frame + KEYCHAIN_FRAME_HEADER_BYTE_COUNT, KEYCHAIN_PAGE_BYTE_COUNT, is_swapped);
}

static bool follows(wal_checksum before, const uint8_t *frame) {
    wal_checksum stored = stored_sum(frame + 16);
    return are_equal(add_frame(before, frame, false), stored) || are_equal(add_frame(before, frame, true), stored);
}

/* Whether a frame that is not what was written ends a transaction. Where the damage is in the number that says so, the sum tells that number:
   it grows by the same amount for each one more. */
static bool commits_by_checksum(wal_checksum before, const uint8_t *frame, bool is_swapped) {
    uint8_t changed[KEYCHAIN_FRAME_BYTE_COUNT];
    memcpy(changed, frame, sizeof changed);
    memset(changed + 4, 0, 4);
    wal_checksum with_zero = add_frame(before, changed, is_swapped), stored = stored_sum(frame + 16);
    uint32_t one = 1;
    one = is_swapped ? __builtin_bswap32(one) : one;
    memcpy(changed + 4, &one, sizeof one);
    wal_checksum with_one = add_frame(before, changed, is_swapped);
    uint32_t first_step = with_one.first - with_zero.first, second_step = with_one.second - with_zero.second;
    /* One of two neighbours in Fibonacci's sequence is odd, and so can be divided by. */
    bool takes_first = first_step & 1;
    uint32_t step = takes_first ? first_step : second_step, inverse = 1;
    for (int round = 0; round < 5; round++) inverse *= 2 - step * inverse;
    uint32_t number = (takes_first ? stored.first - with_zero.first : stored.second - with_zero.second) * inverse;
    return number != 0 && with_zero.first + number * first_step == stored.first
        && with_zero.second + number * second_step == stored.second;
}

static int read_log(sqlite3_file *log, void *buffer, int byte_count, sqlite3_int64 offset) {
    return log->pMethods->xRead(log, buffer, byte_count, offset);
}

int keychain_wal_read_page(sqlite3_file *log, sqlite3_int64 number, uint8_t *page) {
    uint8_t sum[8], frame[KEYCHAIN_FRAME_BYTE_COUNT];
    sqlite3_int64 offset = keychain_frame_offset(number);
    /* The sum ends the header of the frame before, or the header of the file. */
    sqlite3_int64 sum_offset = number == 1 ? KEYCHAIN_WAL_HEADER_BYTE_COUNT - 8 : offset - KEYCHAIN_FRAME_BYTE_COUNT + 16;
    int code = read_log(log, sum, sizeof sum, sum_offset);
    if (code == SQLITE_OK) code = read_log(log, frame, sizeof frame, offset);
    if (code != SQLITE_OK) return code;
    memcpy(page, frame + KEYCHAIN_FRAME_HEADER_BYTE_COUNT, KEYCHAIN_PAGE_BYTE_COUNT);
    return follows(stored_sum(sum), frame) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

/* Whether SQLite takes the file for a log; of which page size is told by the caller's look at the header. */
static bool is_sound_header(const uint8_t *header, bool *is_swapped) {
    if (memcmp(header, "\x37\x7f\x06", 3) != 0 || (header[3] & 0xFE) != 0x82) return false;
    bool is_big_endian = header[3] & 1;
    *is_swapped = is_big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return are_equal(add((wal_checksum){0, 0}, header, 24, *is_swapped), stored_sum(header + 24));
}

static bool has_our_page_size(const uint8_t *header) {
    return header[8] == 0 && header[9] == 0 && header[10] == KEYCHAIN_PAGE_BYTE_COUNT >> 8 && header[11] == 0;
}

/* The walk over the frames of a file. */
typedef struct {
    const uint8_t *header;
    bool is_swapped;
    /* Up to here the file is what was written. */
    bool is_sound, header_is_sound;
    /* The sum in the frame before, and the one it should have: one damaged sum parts no frames. */
    wal_checksum stored, computed;
    /* The commits in the unbroken chain of frames that the walk is in, behind the last sound frame. */
    int64_t commit_count;
    /* What was durable before the next thing in the chain was begun, and that thing: so two prove damage. A header counts too. */
    int64_t step_count;
    int64_t unreachable_count;
} wal_scan;

static void begin_chain(wal_scan *walk, int64_t commit_count) { walk->commit_count = walk->step_count = commit_count; }

/* A transaction begins only when the one before it is durable. So where a chain goes on behind damage over two commits, the first is not of
   a transaction that was being written. Frames that a writer left behind unfinished end in one commit, and no chain leads on from it. */
static void step(wal_scan *walk, const uint8_t *frame) {
    bool has_salts = !walk->header_is_sound || memcmp(frame + 8, walk->header + 16, 8) == 0;
    int64_t commit_count = keychain_frame_commits(frame) ? 1 : 0;
    if (walk->is_sound) {
        uint32_t page = (uint32_t)(frame[0] | frame[1] | frame[2] | frame[3]);
        walk->computed = add_frame(walk->stored, frame, walk->is_swapped);
        if (has_salts && page != 0 && are_equal(walk->computed, stored_sum(frame + 16))) {
            walk->stored = walk->computed;
            return;
        }
        if (commits_by_checksum(walk->stored, frame, walk->is_swapped)) commit_count = 1;
        walk->is_sound = false;
        walk->stored = stored_sum(frame + 16);
        begin_chain(walk, commit_count);
        return;
    }
    bool goes_on = has_salts && (follows(walk->stored, frame) || follows(walk->computed, frame));
    walk->computed = has_salts ? add_frame(walk->stored, frame, walk->is_swapped) : walk->stored;
    walk->stored = stored_sum(frame + 16);
    if (!goes_on) {
        begin_chain(walk, commit_count);
        return;
    }
    bool was_proved = walk->step_count >= 2;
    walk->commit_count += commit_count;
    walk->step_count += commit_count;
    if (walk->step_count >= 2) walk->unreachable_count += was_proved ? commit_count : walk->commit_count;
}

static int walk_frames(sqlite3_file *log, const uint8_t *header, uint8_t *frame, int64_t *count, int64_t *sound_byte_count) {
    wal_scan walk = {.header = header};
    sqlite3_int64 byte_count = 0;
    int code = log->pMethods->xFileSize(log, &byte_count);
    walk.is_sound = walk.header_is_sound = is_sound_header(header, &walk.is_swapped);
    /* Another program's. */
    if (walk.header_is_sound && !has_our_page_size(header)) return SQLITE_OK;
    if (walk.header_is_sound) *sound_byte_count = KEYCHAIN_WAL_HEADER_BYTE_COUNT;
    walk.stored = stored_sum(header + 24);
    walk.computed = add((wal_checksum){0, 0}, header, 24, walk.is_swapped);
    /* The header is made durable before the first frame is written, as a transaction is before the next. */
    walk.step_count = walk.header_is_sound ? 0 : 1;
    for (sqlite3_int64 number = 1; code == SQLITE_OK && keychain_frame_offset(number + 1) <= byte_count; number++) {
        code = read_log(log, frame, KEYCHAIN_FRAME_BYTE_COUNT, keychain_frame_offset(number));
        if (code == SQLITE_OK) step(&walk, frame);
        if (walk.is_sound) *sound_byte_count = keychain_frame_offset(number + 1);
    }
    *count = walk.unreachable_count;
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_wal_count_unreachable(sqlite3_file *log, int64_t *count, int64_t *sound_byte_count) {
    uint8_t header[KEYCHAIN_WAL_HEADER_BYTE_COUNT], frame[KEYCHAIN_FRAME_BYTE_COUNT];
    *count = *sound_byte_count = 0;
    int code = read_log(log, header, sizeof header, 0);
    if (code == SQLITE_OK) code = walk_frames(log, header, frame, count, sound_byte_count);
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}
