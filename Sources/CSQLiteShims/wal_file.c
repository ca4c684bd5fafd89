/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a -wal file, and the calls on it. SQLite verifies checksums of frames only when it searches for the last valid frame. Here each
   page is verified when it is read, so damage reaches neither a reader nor, through a checkpoint, the database. */
#include "wal_file.h"

#include <stddef.h>
#include <string.h>

#include "database_file.h"

/* MARK: Frames */

/* The number, counted from 1, of the frame that begins `inset` bytes before `offset`; 0: none. */
static sqlite3_int64 frame_number(sqlite3_int64 offset, int inset) {
    sqlite3_int64 distance = offset - inset - KEYCHAIN_WAL_HEADER_BYTE_COUNT;
    return distance >= 0 && distance % KEYCHAIN_FRAME_BYTE_COUNT == 0 ? distance / KEYCHAIN_FRAME_BYTE_COUNT + 1 : 0;
}

/* Whether a frame with this header ends a transaction: then the field has the size of the database in pages, which is not 0. */
static bool frame_commits(const uint8_t *header) { return (header[4] | header[5] | header[6] | header[7]) != 0; }

/* Each frame has the cumulative checksum of all frames up to and including itself. So a frame can be verified with the one before it. */
typedef struct {
    uint32_t first, second;
} wal_checksum;

static wal_checksum stored_checksum(const uint8_t *bytes) {
    uint32_t words[2];
    memcpy(words, bytes, sizeof words);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (wal_checksum){__builtin_bswap32(words[0]), __builtin_bswap32(words[1])};
#else
    return (wal_checksum){words[0], words[1]};
#endif
}

static bool are_equal(wal_checksum left, wal_checksum right) { return left.first == right.first && left.second == right.second; }

/* `is_swapped`: the machine that started the file had the other byte order. */
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
    wal_checksum stored = stored_checksum(frame + 16);
    return are_equal(add_frame(before, frame, false), stored) || are_equal(add_frame(before, frame, true), stored);
}

/* Whether a damaged frame ended a transaction. If the damage is in the field that says so, the field's original value is computed from the
   checksum, which grows by a constant amount for each increment of the field. */
static bool commits_by_checksum(wal_checksum before, const uint8_t *frame, bool is_swapped) {
    uint8_t changed[KEYCHAIN_FRAME_BYTE_COUNT];
    memcpy(changed, frame, sizeof changed);
    memset(changed + 4, 0, 4);
    wal_checksum with_zero = add_frame(before, changed, is_swapped), stored = stored_checksum(frame + 16);
    uint32_t one = 1;
    one = is_swapped ? __builtin_bswap32(one) : one;
    memcpy(changed + 4, &one, sizeof one);
    wal_checksum with_one = add_frame(before, changed, is_swapped);
    uint32_t first_step = with_one.first - with_zero.first, second_step = with_one.second - with_zero.second;
    /* The steps are neighboring Fibonacci numbers. One of them is odd, so it has an inverse modulo 2^32. */
    bool first_is_odd = first_step & 1;
    uint32_t step = first_is_odd ? first_step : second_step, inverse = 1;
    for (int round = 0; round < 5; round++) inverse *= 2 - step * inverse;
    uint32_t number = (first_is_odd ? stored.first - with_zero.first : stored.second - with_zero.second) * inverse;
    return number != 0 && with_zero.first + number * first_step == stored.first
        && with_zero.second + number * second_step == stored.second;
}

static int read_wal(sqlite3_file *wal, void *buffer, int byte_count, sqlite3_int64 offset) {
    return wal->pMethods->xRead(wal, buffer, byte_count, offset);
}

/* Whether the index in the -shm file, which begins at `index`, is that of a -wal file with these salts. Source: SQLite, "WAL-mode File Format",
   section 2.1. */
static bool index_has_salts(const volatile uint8_t *index, const uint8_t *salts) {
    for (int byte = 0; byte < 8; byte++) {
        if (index[32 + byte] != salts[byte]) return false;
    }
    return true;
}

/* The offset of the checksum of everything before a frame: it ends the header of the frame before, and for the first frame that of the file. */
static sqlite3_int64 checksum_offset_before(sqlite3_int64 number) {
    return number == 1 ? KEYCHAIN_WAL_HEADER_BYTE_COUNT - 8 : keychain_frame_offset(number - 1) + 16;
}

int keychain_wal_read_frame(
    sqlite3_file *wal, const volatile uint8_t *index, sqlite3_int64 number, uint8_t *page, uint32_t *page_number) {
    uint8_t salts[8], sum[8], frame[KEYCHAIN_FRAME_BYTE_COUNT];
    sqlite3_int64 offset = keychain_frame_offset(number);
    int code = read_wal(wal, sum, sizeof sum, checksum_offset_before(number));
    if (code == SQLITE_OK) code = read_wal(wal, frame, sizeof frame, offset);
    if (code == SQLITE_IOERR_SHORT_READ) return KEYCHAIN_WAL_IS_LOST;
    if (code != SQLITE_OK) return code;
    if (index && !index_has_salts(index, frame + 8)) {
        code = read_wal(wal, salts, sizeof salts, 16);
        if (code != SQLITE_OK) return code;
        return index_has_salts(index, salts) ? SQLITE_IOERR_DATA : KEYCHAIN_WAL_IS_LOST;
    }
    memcpy(page, frame + KEYCHAIN_FRAME_HEADER_BYTE_COUNT, KEYCHAIN_PAGE_BYTE_COUNT);
    *page_number = (uint32_t)frame[0] << 24 | (uint32_t)frame[1] << 16 | (uint32_t)frame[2] << 8 | frame[3];
    return follows(stored_checksum(sum), frame) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

/* Whether SQLite accepts the file's header, except for the page size. */
static bool header_is_valid(const uint8_t *header, bool *is_swapped) {
    if (memcmp(header, "\x37\x7f\x06", 3) != 0 || (header[3] & 0xFE) != 0x82) return false;
    bool is_big_endian = header[3] & 1;
    *is_swapped = is_big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return are_equal(add((wal_checksum){0, 0}, header, 24, *is_swapped), stored_checksum(header + 24));
}

static bool has_our_page_size(const uint8_t *header) {
    return header[8] == 0 && header[9] == 0 && header[10] == KEYCHAIN_PAGE_BYTE_COUNT >> 8 && header[11] == 0;
}

/* The state of a scan over the frames of a file. */
typedef struct {
    const uint8_t *header;
    bool is_swapped;
    /* Whether the file is undamaged up to here, and whether its header is. */
    bool is_sound, header_is_sound;
    /* The checksum stored in the frame before, and the one it should have. A frame that matches either continues the chain, so one damaged
       checksum does not end it. */
    wal_checksum stored, computed;
    /* The number of commits in the current unbroken chain of frames, after the last sound frame. */
    int64_t commit_count;
    /* The number of steps in the chain. A step (a transaction, or the header) is made durable before the next begins. So two steps after
       damage prove that the first was durable. */
    int64_t step_count;
    int64_t unreachable_count;
} wal_scan;

static void begin_chain(wal_scan *scan, int64_t commit_count) { scan->commit_count = scan->step_count = commit_count; }

/* A transaction begins only after the one before it is durable. So if a chain after damage has two commits, the first belongs to a durable
   transaction. A writer that was interrupted leaves frames with at most one commit, which no chain continues. */
static void scan_frame(wal_scan *scan, const uint8_t *frame) {
    bool has_salts = !scan->header_is_sound || memcmp(frame + 8, scan->header + 16, 8) == 0;
    int64_t commit_count = frame_commits(frame) ? 1 : 0;
    if (scan->is_sound) {
        uint32_t page = (uint32_t)(frame[0] | frame[1] | frame[2] | frame[3]);
        scan->computed = add_frame(scan->stored, frame, scan->is_swapped);
        if (has_salts && page != 0 && are_equal(scan->computed, stored_checksum(frame + 16))) {
            scan->stored = scan->computed;
            return;
        }
        if (commits_by_checksum(scan->stored, frame, scan->is_swapped)) commit_count = 1;
        scan->is_sound = false;
        scan->stored = stored_checksum(frame + 16);
        begin_chain(scan, commit_count);
        return;
    }
    bool continues_chain = has_salts && (follows(scan->stored, frame) || follows(scan->computed, frame));
    scan->computed = has_salts ? add_frame(scan->stored, frame, scan->is_swapped) : scan->stored;
    scan->stored = stored_checksum(frame + 16);
    if (!continues_chain) {
        begin_chain(scan, commit_count);
        return;
    }
    bool was_proved = scan->step_count >= 2;
    scan->commit_count += commit_count;
    scan->step_count += commit_count;
    if (scan->step_count >= 2) scan->unreachable_count += was_proved ? commit_count : scan->commit_count;
}

/* Durable transactions follow damage closely. So the search for them ends after this many bytes without one, and after this many zeros, which
   may be a hole in a file of any size. SQLite may also have left frames there: of an earlier round, or of a transaction that was interrupted. */
enum { SEARCH_BYTE_LIMIT = 256 << 20, ZERO_BYTE_LIMIT = 4 << 20 };

static bool is_zero(const uint8_t *frame) { return frame[0] == 0 && memcmp(frame, frame + 1, KEYCHAIN_FRAME_BYTE_COUNT - 1) == 0; }

/* Counts the bytes since the last frame that is sound or belongs to a durable transaction. */
typedef struct {
    int64_t byte_count, zero_byte_count;
} wal_search;

static bool must_continue(wal_search *search, const wal_scan *scan, const uint8_t *frame) {
    search->byte_count = scan->is_sound || scan->step_count >= 2 ? 0 : search->byte_count + KEYCHAIN_FRAME_BYTE_COUNT;
    search->zero_byte_count = search->byte_count > 0 && is_zero(frame) ? search->zero_byte_count + KEYCHAIN_FRAME_BYTE_COUNT : 0;
    return search->byte_count < SEARCH_BYTE_LIMIT && search->zero_byte_count < ZERO_BYTE_LIMIT;
}

static int scan_frames(sqlite3_file *wal, const uint8_t *header, uint8_t *frame, int64_t *count, int64_t *sound_byte_count) {
    wal_scan scan = {.header = header};
    sqlite3_int64 byte_count = 0;
    int code = wal->pMethods->xFileSize(wal, &byte_count);
    scan.is_sound = scan.header_is_sound = header_is_valid(header, &scan.is_swapped);
    /* The -wal file of another program's database. */
    if (scan.header_is_sound && !has_our_page_size(header)) return SQLITE_OK;
    if (scan.header_is_sound) *sound_byte_count = KEYCHAIN_WAL_HEADER_BYTE_COUNT;
    scan.stored = stored_checksum(header + 24);
    scan.computed = add((wal_checksum){0, 0}, header, 24, scan.is_swapped);
    /* The header is made durable before the first frame is written. */
    scan.step_count = scan.header_is_sound ? 0 : 1;
    wal_search search = {0, 0};
    bool continues = true;
    for (sqlite3_int64 number = 1; continues && code == SQLITE_OK && keychain_frame_offset(number + 1) <= byte_count; number++) {
        code = read_wal(wal, frame, KEYCHAIN_FRAME_BYTE_COUNT, keychain_frame_offset(number));
        if (code != SQLITE_OK) break;
        scan_frame(&scan, frame);
        if (scan.is_sound) *sound_byte_count = keychain_frame_offset(number + 1);
        continues = must_continue(&search, &scan, frame);
    }
    *count = scan.unreachable_count;
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_wal_count_unreachable(sqlite3_file *wal, int64_t *count, int64_t *sound_byte_count) {
    uint8_t header[KEYCHAIN_WAL_HEADER_BYTE_COUNT], frame[KEYCHAIN_FRAME_BYTE_COUNT];
    *count = *sound_byte_count = 0;
    int code = read_wal(wal, header, sizeof header, 0);
    if (code == SQLITE_OK) code = scan_frames(wal, header, frame, count, sound_byte_count);
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_wal_commits_after(sqlite3_file *wal, uint32_t last_frame, bool *result) {
    uint8_t salts[8], sum[8], frame[KEYCHAIN_FRAME_BYTE_COUNT];
    *result = false;
    int code = read_wal(wal, salts, sizeof salts, 16);
    if (code == SQLITE_OK) code = read_wal(wal, sum, sizeof sum, checksum_offset_before((sqlite3_int64)last_frame + 1));
    for (sqlite3_int64 number = (sqlite3_int64)last_frame + 1; code == SQLITE_OK; number++) {
        code = read_wal(wal, frame, sizeof frame, keychain_frame_offset(number));
        if (code != SQLITE_OK || memcmp(frame + 8, salts, sizeof salts) != 0 || !follows(stored_checksum(sum), frame)) break;
        *result = frame_commits(frame);
        if (*result) break;
        memcpy(sum, frame + 16, sizeof sum);
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

/* MARK: Calls on the file */

static keychain_wal_file *ours(sqlite3_file *file) { return (keychain_wal_file *)file; }

static sqlite3_file *real(sqlite3_file *file) { return ours(file)->real; }

static const sqlite3_io_methods *below(sqlite3_file *file) { return real(file)->pMethods; }

/* Whether damage may end the search for the last valid frame: the connection reads what is left, and no other can use its index. */
static bool ignores_damage(const keychain_checksummed_file *database) {
    return database && database->state == KEYCHAIN_PAGES_UNVERIFIED && !keychain_wal_index_header(&database->index);
}

/* SQLite reads the header before it searches for the last valid frame, while it holds a lock against writers. Damage would end that search early. */
static int read_header(sqlite3_file *file, void *buffer) {
    int64_t count = 0, sound_byte_count = 0;
    int code = keychain_wal_count_unreachable(real(file), &count, &sound_byte_count);
    if (code == SQLITE_OK && count > 0 && !ignores_damage(ours(file)->database)) code = KEYCHAIN_WAL_IS_DAMAGED;
    return code == SQLITE_OK ? below(file)->xRead(real(file), buffer, KEYCHAIN_WAL_HEADER_BYTE_COUNT, 0) : code;
}

static int read_file(sqlite3_file *file, void *buffer, int byte_count, sqlite3_int64 offset) {
    if (offset == 0 && byte_count == KEYCHAIN_WAL_HEADER_BYTE_COUNT) return read_header(file, buffer);
    sqlite3_int64 number = byte_count == KEYCHAIN_PAGE_BYTE_COUNT ? frame_number(offset, KEYCHAIN_FRAME_HEADER_BYTE_COUNT) : 0;
    sqlite3_int64 first_uncommitted = ours(file)->first_uncommitted_frame;
    if (number == 0 || (first_uncommitted != 0 && number >= first_uncommitted)) {
        return below(file)->xRead(real(file), buffer, byte_count, offset);
    }
    const keychain_checksummed_file *database = ours(file)->database;
    uint32_t page = 0;
    int code = keychain_wal_read_frame(real(file), database ? keychain_wal_index_header(&database->index) : NULL, number, buffer, &page);
    return code == SQLITE_OK && database ? keychain_checksummed_file_expect_newest(database, number, page) : code;
}

static void begin_own_write(const keychain_wal_file *file) {
    if (file->database) keychain_own_writes_begin(&file->database->own_wal_writes, file->name);
}

static void end_own_writes(const keychain_wal_file *file) {
    if (file->database) keychain_own_writes_end(&file->database->own_wal_writes, file->name);
}

static int write_file(sqlite3_file *file, const void *buffer, int byte_count, sqlite3_int64 offset) {
    if (byte_count == KEYCHAIN_FRAME_HEADER_BYTE_COUNT) {
        sqlite3_int64 number = frame_number(offset, 0);
        if (frame_commits(buffer)) {
            ours(file)->first_uncommitted_frame = 0;
            if (number != 0) ours(file)->last_committed_frame = number;
        } else if (number != 0 && ours(file)->first_uncommitted_frame == 0) {
            ours(file)->first_uncommitted_frame = number;
        }
    }
    begin_own_write(ours(file));
    return below(file)->xWrite(real(file), buffer, byte_count, offset);
}

void keychain_wal_file_end_transaction(keychain_wal_file *file) { file->first_uncommitted_frame = 0; }

/* A file that has only its header is as good as an empty one. Without permission to write the -shm file, SQLite 3.40 would wait ten seconds for
   frames in each read, and then fail. */
static int file_size(sqlite3_file *file, sqlite3_int64 *byte_count) {
    int code = below(file)->xFileSize(real(file), byte_count);
    if (code == SQLITE_OK && *byte_count <= KEYCHAIN_WAL_HEADER_BYTE_COUNT) *byte_count = 0;
    return code;
}

/* MARK: Calls passed to the base VFS unchanged */

static int close_file(sqlite3_file *file) {
    if (ours(file)->database) ours(file)->database->wal = NULL;
    int code = below(file)->xClose(real(file));
    file->pMethods = NULL;
    return code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 byte_count) {
    begin_own_write(ours(file));
    int code = below(file)->xTruncate(real(file), byte_count);
    end_own_writes(ours(file));
    return code;
}

/* A commit ends with a flush, which may take long. What another program writes meanwhile is not a write of this connection. */
static int sync_file(sqlite3_file *file, int flags) {
    end_own_writes(ours(file));
    return below(file)->xSync(real(file), flags);
}

static int lock_file(sqlite3_file *file, int level) { return below(file)->xLock(real(file), level); }
static int unlock_file(sqlite3_file *file, int level) { return below(file)->xUnlock(real(file), level); }
static int check_lock(sqlite3_file *file, int *is_held) { return below(file)->xCheckReservedLock(real(file), is_held); }
static int control_file(sqlite3_file *file, int operation, void *argument) {
    return below(file)->xFileControl(real(file), operation, argument);
}
static int sector_size(sqlite3_file *file) { return below(file)->xSectorSize(real(file)); }
static int characteristics(sqlite3_file *file) { return below(file)->xDeviceCharacteristics(real(file)); }

static const sqlite3_io_methods methods = {
    .iVersion = 1, .xClose = close_file, .xRead = read_file, .xWrite = write_file, .xTruncate = truncate_file, .xSync = sync_file,
    .xFileSize = file_size, .xLock = lock_file, .xUnlock = unlock_file, .xCheckReservedLock = check_lock, .xFileControl = control_file,
    .xSectorSize = sector_size, .xDeviceCharacteristics = characteristics};

sqlite3_file *keychain_wal_file_base(sqlite3_file *file) { return file->pMethods == &methods ? real(file) : file; }

void keychain_wal_file_wrap(
    keychain_wal_file *file, sqlite3_file *real_file, const char *name, keychain_file_identity identity,
    keychain_checksummed_file *database) {
    *file = (keychain_wal_file){
        .base = {.pMethods = &methods}, .real = real_file, .name = name, .identity = identity, .database = database};
    if (database) database->wal = file;
}
