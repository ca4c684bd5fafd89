/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of a page, and the calls on a main database file. Only read, write, and file control do more than forward the
   call. On-disk-format.md specifies the checksum. */
#include "database_file.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* MARK: The checksum */

/* "KCHNPAGE" and "KCHN SUM": with nonzero seeds a page of zeros is not valid. */
#define FIRST_SEED UINT64_C(0x4B43484E50414745)
#define SECOND_SEED UINT64_C(0x4B43484E2053554D)

#define LANE_COUNT 4
#define WORD_COUNT ((KEYCHAIN_PAGE_BYTE_COUNT - KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT) / 4)
#define ROUND_COUNT (WORD_COUNT / LANE_COUNT)

_Static_assert(ROUND_COUNT * LANE_COUNT == WORD_COUNT, "every lane has the same number of words");

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
    /* Specified as `s1 += word, s2 += s1` for each word in turn. Computed here in four independent lanes, which the compiler vectorizes.
       A word's weight in s2 is the number of words from it to the end: 4 times its weight within its lane, minus the number of its lane. */
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

/* MARK: Reading and writing pages */

#define PAGE KEYCHAIN_PAGE_BYTE_COUNT
#define CONTENT (KEYCHAIN_PAGE_BYTE_COUNT - KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT)

/* SQLite locks bytes within the page of this number and never reads or writes the page. */
#define LOCKED_PAGE (0x40000000 / PAGE + 1)

/* A device characteristic that allows SQLite to read a part of a page without its cache. Older headers do not define it. */
#ifndef SQLITE_IOCAP_SUBPAGE_READ
#define SQLITE_IOCAP_SUBPAGE_READ 0x00008000
#endif

static keychain_checksummed_file *ours(sqlite3_file *file) { return (keychain_checksummed_file *)file; }

static sqlite3_file *real(sqlite3_file *file) { return ours(file)->real; }

static const sqlite3_io_methods *below(sqlite3_file *file) { return real(file)->pMethods; }

/* Some base VFSes report SQLITE_IOERR_CORRUPTFS for a disk failure. SQLite would report that as a damaged database. */
static int read_below(sqlite3_file *file, void *buffer, int byte_count, sqlite3_int64 offset) {
    int code = below(file)->xRead(real(file), buffer, byte_count, offset);
    return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code;
}

/* Classifies the file by its first 100 bytes. Source: SQLite, "Database File Format", section 1.3. */
static void classify_header(keychain_checksummed_file *file, const uint8_t *header) {
    if (file->state == KEYCHAIN_PAGES_CHECKED || file->state == KEYCHAIN_PAGES_UNVERIFIED) return;
    bool is_store = memcmp(header, "SQLite format 3", 16) == 0 && memcmp(header + 68, "KCHN", 4) == 0;
    file->state = is_store ? KEYCHAIN_PAGES_CHECKED : KEYCHAIN_PAGES_FOREIGN;
}

/* Classifies the file on the first call. A file without its first page stays unknown, so the next call tries again: it is empty, or SQLite,
   whose cache was full, has written other pages of a new database first. */
static int detect_state(sqlite3_file *file) {
    static const uint8_t absent[16];
    if (ours(file)->state != KEYCHAIN_PAGES_UNKNOWN) return SQLITE_OK;
    uint8_t header[100];
    int code = read_below(file, header, sizeof header, 0);
    if (code == SQLITE_OK && memcmp(header, absent, sizeof absent) != 0) classify_header(ours(file), header);
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

static bool is_valid(const uint8_t *page, sqlite3_int64 offset) {
    uint8_t checksum[KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT];
    keychain_page_checksum(page, (uint64_t)(offset / PAGE + 1), checksum);
    return memcmp(page + CONTENT, checksum, sizeof checksum) == 0;
}

/* Writes a page of an index without entries. Source: SQLite, "Database File Format", section 1.6. */
static void make_empty_index_page(uint8_t *page) {
    memset(page, 0, PAGE);
    page[0] = 0x0A;
    page[5] = CONTENT >> 8;
    page[6] = CONTENT & 0xFF;
}

/* Reads and verifies the page at `offset`. A page after the end of the file is a short read, as SQLite expects; a truncated page is damage. */
static int read_page(sqlite3_file *file, uint8_t *page, sqlite3_int64 offset) {
    int code = read_below(file, page, PAGE, offset);
    if (code == SQLITE_OK) {
        if (offset == 0) classify_header(ours(file), page);
        if (ours(file)->state != KEYCHAIN_PAGES_CHECKED || is_valid(page, offset)) return SQLITE_OK;
        if (!ours(file)->reads_damaged_as_empty || offset == 0) return SQLITE_IOERR_DATA;
        make_empty_index_page(page);
        return SQLITE_OK;
    }
    if (code != SQLITE_IOERR_SHORT_READ || ours(file)->state != KEYCHAIN_PAGES_CHECKED) return code;
    sqlite3_int64 byte_count = 0;
    int sized = below(file)->xFileSize(real(file), &byte_count);
    if (sized != SQLITE_OK) return sized;
    return byte_count > offset ? SQLITE_IOERR_DATA : code;
}

/* MARK: Comparing the index of the -wal file with its frames */

/* Whether the index is compared: that of a store whose damage is reported. */
static bool verifies_index(const keychain_checksummed_file *file) {
    return file->state == KEYCHAIN_PAGES_CHECKED && file->wal && keychain_wal_index_header(&file->index);
}

int keychain_checksummed_file_expect_newest(const keychain_checksummed_file *file, sqlite3_int64 frame, uint32_t page) {
    if (!verifies_index(file)) return SQLITE_OK;
    /* SQLite has found the frame by the page number in the index, so that is the page which it wants. */
    if (keychain_wal_index_page(&file->index, (uint32_t)frame) != page) return KEYCHAIN_WAL_INDEX_IS_WRONG;
    bool is_in_map = !file->frames.is_stale && frame <= file->frames.frame_count;
    /* A checkpoint also reads frames that were committed since, and a transaction that continues after its commit reads its own. */
    bool may_be_later = file->is_checkpointing || (!file->frames.is_stale && frame <= file->wal->last_committed_frame);
    bool is_expected = is_in_map ? keychain_frame_map_newest(&file->frames, page) == frame : may_be_later;
    return is_expected ? SQLITE_OK : KEYCHAIN_WAL_INDEX_IS_WRONG;
}

/* Compares a page of the database with its newest frame. */
static int expect_content(const keychain_checksummed_file *file, const uint8_t *page, uint32_t number, uint32_t frame) {
    uint8_t newest[PAGE];
    uint32_t newest_number = 0;
    sqlite3_file *wal = keychain_wal_file_base(&file->wal->base);
    int code = keychain_wal_read_frame(wal, keychain_wal_index_header(&file->index), frame, newest, &newest_number);
    if (code != SQLITE_OK) return code;
    return newest_number == number && memcmp(newest, page, CONTENT) == 0 ? SQLITE_OK : KEYCHAIN_WAL_INDEX_IS_WRONG;
}

/* SQLite reads a page from the database only if the -wal file has no version of it, or if a checkpoint has copied the newest one. */
static int expect_newest_content(const keychain_checksummed_file *file, const uint8_t *page, sqlite3_int64 offset) {
    if (!verifies_index(file) || file->frames.frame_count == 0) return SQLITE_OK;
    uint32_t number = (uint32_t)(offset / PAGE + 1), frame = keychain_frame_map_newest(&file->frames, number);
    int code = frame == 0 ? SQLITE_OK : expect_content(file, page, number, frame);
    /* Looked up after the frame was read: the index is restarted before frames are overwritten. Who restarted it has compared all pages. */
    bool is_restarted = file->lets_others_restart && keychain_frame_map_is_restarted(&file->frames, &file->index);
    return is_restarted ? SQLITE_OK : code;
}

/* Whether the newest frames up to this one are in the database. */
static int expect_copied(keychain_checksummed_file *file, uint32_t last_frame) {
    for (uint32_t slot = 0; slot < file->frames.slot_count; slot++) {
        uint32_t number = file->frames.slots[slot].page, frame = file->frames.slots[slot].frame;
        /* A checkpoint does not copy pages beyond the end of the database. */
        if (number == 0 || frame > last_frame || number > file->frames.page_count) continue;
        uint8_t page[PAGE];
        int code = read_below(&file->base, page, PAGE, ((sqlite3_int64)number - 1) * PAGE);
        if (code == SQLITE_IOERR_SHORT_READ) return KEYCHAIN_WAL_INDEX_IS_WRONG;
        if (code == SQLITE_OK) code = expect_content(file, page, number, frame);
        if (code != SQLITE_OK) return code;
    }
    return SQLITE_OK;
}

/* Extends the map to all frames that the index names. */
static int extend_frames(keychain_checksummed_file *file) {
    return keychain_frame_map_extend(&file->frames, keychain_wal_file_base(&file->wal->base), &file->index);
}

static int expect_all_copied(keychain_checksummed_file *file) {
    int code = extend_frames(file);
    if (code == SQLITE_OK && file->frames.is_stale) code = KEYCHAIN_WAL_INDEX_IS_WRONG;
    return code == SQLITE_OK ? expect_copied(file, file->frames.frame_count) : code;
}

/* MARK: Calls on the file */

static int read_file(sqlite3_file *file, void *buffer, int byte_count, sqlite3_int64 offset) {
    /* SQLite reads the header and its change counter without a lock, while another process may be writing the page. */
    bool is_header = (offset == 0 && byte_count <= 100) || (offset == 24 && byte_count == 16);
    if (is_header) return read_below(file, buffer, byte_count, offset);
    int code = detect_state(file);
    if (code != SQLITE_OK) return code;
    sqlite3_int64 inset = offset % PAGE;
    if (inset == 0 && byte_count == PAGE) {
        code = read_page(file, buffer, offset);
        bool is_read = code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ;
        int expected = is_read ? expect_newest_content(ours(file), buffer, offset) : code;
        return expected == SQLITE_OK ? code : expected;
    }
    if (ours(file)->state != KEYCHAIN_PAGES_CHECKED) return read_below(file, buffer, byte_count, offset);
    /* A damaged header may make SQLite use another page size. */
    if (inset + byte_count > PAGE) return SQLITE_IOERR_DATA;
    uint8_t page[PAGE];
    code = read_page(file, page, offset - inset);
    if (code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ) {
        int expected = expect_newest_content(ours(file), page, offset - inset);
        if (expected != SQLITE_OK) return expected;
        memcpy(buffer, page + inset, (size_t)byte_count);
    }
    return code;
}

static int write_file(sqlite3_file *file, const void *buffer, int byte_count, sqlite3_int64 offset) {
    int code = detect_state(file);
    if (code != SQLITE_OK) return code;
    if (offset == 0 && byte_count == PAGE) classify_header(ours(file), buffer);
    if (ours(file)->state == KEYCHAIN_PAGES_FOREIGN) return below(file)->xWrite(real(file), buffer, byte_count, offset);
    keychain_own_writes_begin(&ours(file)->own_writes, ours(file)->name);
    if (byte_count != PAGE || offset % PAGE != 0) return SQLITE_IOERR_WRITE;
    /* SQLite owns the buffer and may be reading it on another thread. */
    uint8_t page[PAGE];
    memcpy(page, buffer, CONTENT);
    keychain_page_checksum(page, (uint64_t)(offset / PAGE + 1), page + CONTENT);
    code = below(file)->xWrite(real(file), page, PAGE, offset);
    keychain_own_writes_end(&ours(file)->own_writes, ours(file)->name);
    return code;
}

/* Determines the size of the file without what follows the last page, which SQLite does not use: it may be a hole of any size. */
static int used_byte_count(sqlite3_file *file, sqlite3_int64 *byte_count) {
    uint8_t page[PAGE];
    int code = below(file)->xFileSize(real(file), byte_count);
    if (code == SQLITE_OK && *byte_count >= PAGE) code = read_below(file, page, PAGE, 0);
    if (code != SQLITE_OK || *byte_count < PAGE || !is_valid(page, 0)) return code;
    sqlite3_int64 page_count = (sqlite3_int64)page[28] << 24 | page[29] << 16 | page[30] << 8 | page[31];
    if (page_count > 0 && page_count * PAGE < *byte_count) *byte_count = page_count * PAGE;
    return code;
}

static int find_next_damaged(sqlite3_file *file, sqlite3_int64 *number) {
    sqlite3_int64 offset = *number * PAGE, byte_count = 0;
    *number = 0;
    int code = detect_state(file);
    if (code == SQLITE_OK) code = used_byte_count(file, &byte_count);
    if (ours(file)->state != KEYCHAIN_PAGES_CHECKED) return code;
    for (; code == SQLITE_OK && offset < byte_count; offset += PAGE) {
        if (offset / PAGE + 1 == LOCKED_PAGE) continue;
        uint8_t page[PAGE];
        code = read_below(file, page, PAGE, offset);
        if (code == SQLITE_OK && is_valid(page, offset)) continue;
        if (code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ) {
            *number = offset / PAGE + 1;
            return SQLITE_OK;
        }
    }
    return code;
}

/* The number of pages after the first one that are examined. In a store nearly all are valid. */
enum { WITNESS_COUNT = 64 };

/* Reads without a lock. A page that a checkpoint is writing looks damaged for a moment, so the first page is read several times. */
static int find_damage_of_first(sqlite3_file *file, bool *is_damaged) {
    uint8_t page[PAGE];
    *is_damaged = false;
    for (int attempt = 0; attempt < 4; attempt++) {
        if (attempt > 0) (void)sqlite3_sleep(1);
        int code = read_below(file, page, PAGE, 0);
        if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
        if (is_valid(page, 0)) return SQLITE_OK;
    }
    for (int witness = 1; witness <= WITNESS_COUNT; witness++) {
        int code = read_below(file, page, PAGE, (sqlite3_int64)witness * PAGE);
        if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
        *is_damaged = is_valid(page, (sqlite3_int64)witness * PAGE);
        if (*is_damaged) break;
    }
    return SQLITE_OK;
}

static int control_file(sqlite3_file *file, int operation, void *argument) {
    switch (operation) {
    case KEYCHAIN_FILE_CONTROL_CHECK: ours(file)->state = KEYCHAIN_PAGES_CHECKED; return SQLITE_OK;
    case KEYCHAIN_FILE_CONTROL_READ_UNVERIFIED: ours(file)->state = KEYCHAIN_PAGES_UNVERIFIED; return SQLITE_OK;
    case KEYCHAIN_FILE_CONTROL_READ_DAMAGED_AS_EMPTY: ours(file)->reads_damaged_as_empty = *(bool *)argument; return SQLITE_OK;
    case KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED: return find_next_damaged(file, argument);
    case KEYCHAIN_FILE_CONTROL_FIRST_IS_DAMAGED: return find_damage_of_first(file, argument);
    default: return below(file)->xFileControl(real(file), operation, argument);
    }
}

static int characteristics(sqlite3_file *file) {
    return below(file)->xDeviceCharacteristics(real(file)) & ~SQLITE_IOCAP_SUBPAGE_READ;
}

/* The locks in the shared memory: the write lock, the checkpoint lock, and those of readers, of which the first is for readers that ignore the
   -wal file. Source: SQLite, "WAL-mode File Format", section 2.3. */
enum { WRITE_LOCK = 0, CHECKPOINT_LOCK = 1, FIRST_READ_LOCK = 3 };

/* Whether the -wal file was restarted since the checkpoint began. SQLite from 3.7.0 to 3.51.2 would go on with its old copy of the index, and count
   the new frames as copied. While the lock of readers that ignore the -wal file is held, no process restarts it. */
static bool is_restarted_since_checkpoint_began(const keychain_checksummed_file *file) {
    const volatile uint8_t *header = keychain_wal_index_header(&file->index);
    return header && !keychain_wal_index_has_salts(&file->index, file->salts_of_checkpoint);
}

/* Compares the index with the frames after a lock was granted. */
static int verify_locked(sqlite3_file *file, int first, int count, int flags) {
    int code = detect_state(file);
    if (code != SQLITE_OK || !verifies_index(ours(file))) return code;
    /* A transaction begins. SQLite has read the header of the index before, and compares it now: the map is that of its snapshot. */
    if (flags & SQLITE_SHM_SHARED) {
        ours(file)->wal->last_committed_frame = 0;
        ours(file)->lets_others_restart = first == FIRST_READ_LOCK;
        return extend_frames(ours(file));
    }
    /* The frames are about to be overwritten or truncated: SQLite takes the locks of all readers that use frames. */
    return first == FIRST_READ_LOCK + 1 && count > 1 ? expect_all_copied(ours(file)) : SQLITE_OK;
}

static int lock_index(sqlite3_file *file, int first, int count, int flags) {
    if (ours(file)->locks.shared_memory < 0) return below(file)->xShmLock(real(file), first, count, flags);
    return keychain_file_locks_lock_shared(&ours(file)->locks, first, count, flags);
}

static int lock_shared(sqlite3_file *file, int first, int count, int flags) {
    bool is_exclusive = flags & SQLITE_SHM_EXCLUSIVE, is_unlocked = flags & SQLITE_SHM_UNLOCK;
    bool ends_transaction = first == WRITE_LOCK && is_unlocked && is_exclusive;
    if (ends_transaction && ours(file)->wal) keychain_wal_file_end_transaction(ours(file)->wal);
    int code = lock_index(file, first, count, flags);
    /* SQLite copies the header of the index after it has both locks. While a checkpoint waits for the write lock, a writer may restart the file. */
    if (code == SQLITE_OK && (first == CHECKPOINT_LOCK || first == WRITE_LOCK) && !is_unlocked) {
        keychain_wal_index_copy_salts(&ours(file)->index, ours(file)->salts_of_checkpoint);
    }
    if (code != SQLITE_OK || first < FIRST_READ_LOCK) return code;
    /* A checkpoint copies pages while no reader may ignore the -wal file. */
    if (first == FIRST_READ_LOCK && is_exclusive) {
        if (!is_unlocked && count == 1 && is_restarted_since_checkpoint_began(ours(file))) {
            (void)lock_index(file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
            return SQLITE_BUSY;
        }
        ours(file)->is_checkpointing = !is_unlocked;
        keychain_frame_map_forget_restarted(&ours(file)->frames, &ours(file)->index);
    }
    if (is_unlocked) return SQLITE_OK;
    code = verify_locked(file, first, count, flags);
    if (code == SQLITE_OK) return SQLITE_OK;
    (void)lock_index(file, first, count, (flags & ~SQLITE_SHM_LOCK) | SQLITE_SHM_UNLOCK);
    if (first == FIRST_READ_LOCK && is_exclusive) ours(file)->is_checkpointing = false;
    return code;
}

/* MARK: Files that lost their names */

/* The path of the -shm file; empty if it is too long. */
typedef struct {
    char text[4096];
} shared_memory_path;

static shared_memory_path shared_memory_path_of(const char *name) {
    shared_memory_path path;
    int length = snprintf(path.text, sizeof path.text, "%s-shm", name);
    if (length < 0 || (size_t)length >= sizeof path.text) path.text[0] = 0;
    return path;
}

static keychain_file_identity shared_memory_identity(const char *name) { return keychain_file_identity_of(shared_memory_path_of(name).text); }

static int share_locks(sqlite3_file *file, keychain_file_identity identity) {
    return keychain_file_locks_share(&ours(file)->locks, shared_memory_path_of(ours(file)->name).text, identity);
}

int keychain_checksummed_file_lost(const keychain_checksummed_file *file) {
    int lost = 0;
    if (!keychain_file_identities_match(keychain_file_identity_of(file->name), file->identity)) lost |= KEYCHAIN_DATABASE_LOST;
    if (file->wal && !keychain_file_identities_match(keychain_file_identity_of(file->wal->name), file->wal->identity)) {
        lost |= KEYCHAIN_WAL_LOST;
    }
    bool is_mapped = file->shared_memory.is_known;
    if (is_mapped && !keychain_file_identities_match(shared_memory_identity(file->name), file->shared_memory)) lost |= KEYCHAIN_SHM_LOST;
    return lost;
}

/* Whether a checkpoint by this index would copy the newest version of each page. */
static int expect_complete_index(sqlite3_file *file);

static int unlock_file(sqlite3_file *file, int level) {
    if (keychain_file_locks_are_used(&ours(file)->locks)) return keychain_file_locks_lower(&ours(file)->locks, level);
    return below(file)->xUnlock(real(file), level);
}

static int check_lock(sqlite3_file *file, int *is_held) {
    if (keychain_file_locks_are_used(&ours(file)->locks)) return keychain_file_locks_is_reserved(&ours(file)->locks, is_held);
    return below(file)->xCheckReservedLock(real(file), is_held);
}

/* With an open -wal file SQLite takes this lock only to close the last connection. It would then copy the -wal file into the database and
   remove both files beside it by name, although the names may belong to another database by now, and although the index may hide frames. If
   the lock is refused, it does neither, and the next process makes another index from the -wal file. */
static int lock_file(sqlite3_file *file, int level) {
    bool has_locks = keychain_file_locks_are_used(&ours(file)->locks);
    int code = has_locks ? keychain_file_locks_raise(&ours(file)->locks, level) : below(file)->xLock(real(file), level);
    if (code != SQLITE_OK || level != SQLITE_LOCK_EXCLUSIVE || !ours(file)->wal) return code;
    if (keychain_checksummed_file_lost(ours(file)) == 0 && expect_complete_index(file) == SQLITE_OK) {
        ours(file)->is_checkpointing = true;
        return SQLITE_OK;
    }
    (void)unlock_file(file, SQLITE_LOCK_SHARED);
    return SQLITE_BUSY;
}

/* Guards the list of files with a mapping, and is held while the base VFS maps and unmaps: it shares one mapping between all connections of the
   process to the same file. */
static pthread_mutex_t sharing_lock = PTHREAD_MUTEX_INITIALIZER;
static keychain_checksummed_file *first_sharing;

static bool is_mapped(int code) { return code == SQLITE_OK || code == SQLITE_READONLY; }

/* Maps for the first time, and determines which -shm file is mapped: the one that another connection of this process has mapped, or the one
   that has the name before and after the call. */
static int begin_sharing(sqlite3_file *file, int region, int byte_count, int extends, void volatile **memory) {
    const keychain_checksummed_file *other = first_sharing;
    while (other && !keychain_file_identities_match(other->identity, ours(file)->identity)) other = other->next_sharing;
    int code = SQLITE_PROTOCOL;
    for (int attempt = 0; attempt < 10; attempt++) {
        keychain_file_identity before = shared_memory_identity(ours(file)->name);
        code = below(file)->xShmMap(real(file), region, byte_count, extends, memory);
        if (!is_mapped(code)) return code;
        keychain_file_identity mapped = other ? other->shared_memory : shared_memory_identity(ours(file)->name);
        if (other || keychain_file_identities_match(before, mapped)) {
            int locked = share_locks(file, mapped);
            if (locked != SQLITE_OK) {
                (void)below(file)->xShmUnmap(real(file), 0);
                return locked;
            }
            ours(file)->shared_memory = mapped;
            ours(file)->next_sharing = first_sharing;
            first_sharing = ours(file);
            return code;
        }
        (void)below(file)->xShmUnmap(real(file), 0);
        code = SQLITE_PROTOCOL;
    }
    return code;
}

static int map_shared(sqlite3_file *file, int region, int byte_count, int extends, void volatile **memory) {
    int code;
    if (ours(file)->shared_memory.is_known) {
        code = below(file)->xShmMap(real(file), region, byte_count, extends, memory);
    } else {
        pthread_mutex_lock(&sharing_lock);
        code = begin_sharing(file, region, byte_count, extends, memory);
        pthread_mutex_unlock(&sharing_lock);
    }
    int added = is_mapped(code) ? keychain_wal_index_add(&ours(file)->index, region, *memory) : SQLITE_OK;
    return added == SQLITE_OK ? code : added;
}

static int expect_complete_index(sqlite3_file *file) {
    keychain_checksummed_file *database = ours(file);
    /* Without a complete header SQLite reads the frames themselves. */
    if (!verifies_index(database) || !keychain_wal_index_is_complete(&database->index)) return SQLITE_OK;
    int code = extend_frames(database);
    if (code == SQLITE_OK && database->frames.is_stale) code = KEYCHAIN_WAL_INDEX_IS_WRONG;
    if (code != SQLITE_OK || database->frames.frame_count == 0) return code;
    for (int region = 0; region <= keychain_wal_index_region_of(database->frames.frame_count); region++) {
        void volatile *memory = NULL;
        if (region >= database->index.region_count) code = map_shared(file, region, KEYCHAIN_INDEX_REGION_BYTE_COUNT, 0, &memory);
        if (!is_mapped(code)) return code;
    }
    code = keychain_frame_map_compare(&database->frames, keychain_wal_file_base(&database->wal->base), &database->index);
    /* A checkpoint skips the frames that the index calls copied. */
    return code == SQLITE_OK ? expect_copied(database, keychain_wal_index_backfilled(&database->index)) : code;
}

static int unmap_shared(sqlite3_file *file, int removes) {
    pthread_mutex_lock(&sharing_lock);
    keychain_checksummed_file **link = &first_sharing;
    while (*link && *link != ours(file)) link = &(*link)->next_sharing;
    if (*link) *link = ours(file)->next_sharing;
    keychain_wal_index_clear(&ours(file)->index);
    keychain_frame_map_clear(&ours(file)->frames);
    ours(file)->shared_memory.is_known = false;
    int code = below(file)->xShmUnmap(real(file), removes);
    keychain_file_locks_end_sharing(&ours(file)->locks);
    pthread_mutex_unlock(&sharing_lock);
    return code;
}

/* MARK: Calls passed to the base VFS unchanged */

static int close_file(sqlite3_file *file) {
    keychain_wal_index_clear(&ours(file)->index);
    keychain_frame_map_clear(&ours(file)->frames);
    keychain_file_locks_close(&ours(file)->locks);
    int code = below(file)->xClose(real(file));
    file->pMethods = NULL;
    return code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 byte_count) {
    keychain_own_writes_begin(&ours(file)->own_writes, ours(file)->name);
    int code = below(file)->xTruncate(real(file), byte_count);
    keychain_own_writes_end(&ours(file)->own_writes, ours(file)->name);
    return code;
}
static int sync_file(sqlite3_file *file, int flags) { return below(file)->xSync(real(file), flags); }
static int file_size(sqlite3_file *file, sqlite3_int64 *byte_count) { return below(file)->xFileSize(real(file), byte_count); }
static int sector_size(sqlite3_file *file) { return below(file)->xSectorSize(real(file)); }

static void barrier_shared(sqlite3_file *file) { below(file)->xShmBarrier(real(file)); }

#define COMMON                                                                                                                    \
    .xClose = close_file, .xRead = read_file, .xWrite = write_file, .xTruncate = truncate_file, .xSync = sync_file,               \
    .xFileSize = file_size, .xLock = lock_file, .xUnlock = unlock_file, .xCheckReservedLock = check_lock,                         \
    .xFileControl = control_file, .xSectorSize = sector_size, .xDeviceCharacteristics = characteristics

/* Not version 3: it would let SQLite read pages from a memory mapping, without verification. */
static const sqlite3_io_methods without_shared_memory = {.iVersion = 1, COMMON};
static const sqlite3_io_methods with_shared_memory = {
    .iVersion = 2, COMMON, .xShmMap = map_shared, .xShmLock = lock_shared, .xShmBarrier = barrier_shared, .xShmUnmap = unmap_shared};

keychain_checksummed_file *keychain_checksummed_file_of(sqlite3_file *file) {
    bool is_ours = file && (file->pMethods == &with_shared_memory || file->pMethods == &without_shared_memory);
    return is_ours ? ours(file) : NULL;
}

int keychain_checksummed_file_wrap(
    keychain_checksummed_file *file, sqlite3_file *real_file, const char *name, keychain_file_identity identity, bool has_own_locks) {
    bool shares = real_file->pMethods->iVersion >= 2 && real_file->pMethods->xShmMap != NULL;
    *file = (keychain_checksummed_file){
        .base = {.pMethods = shares ? &with_shared_memory : &without_shared_memory}, .real = real_file, .state = KEYCHAIN_PAGES_UNKNOWN,
        .name = name, .identity = identity, .locks = {.database = -1, .shared_memory = -1}};
    return has_own_locks ? keychain_file_locks_open(&file->locks, name, identity) : SQLITE_OK;
}
