/* SPDX-License-Identifier: Apache-2.0 */
/* The VFS, which wraps main database files and their -wal files and passes everything else on, and the functions for its users. */
#include "page_checksums.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database_file.h"
#include "wal_file.h"

/* MARK: The VFS */

#define NAME "keychain-checksums"

/* Our part of a file. The base VFS's part follows it, aligned for any type. */
typedef union {
    keychain_checksummed_file main;
    keychain_wal_file wal;
} head;
#define HEAD_BYTE_COUNT (((int)sizeof(head) + 15) / 16 * 16)

static sqlite3_vfs *below(sqlite3_vfs *vfs) { return vfs->pAppData; }

/* Whether the files are those of the operating system, and not those of a test. */
static bool is_system_vfs(const sqlite3_vfs *vfs) { return strcmp(vfs->zName, "unix") == 0; }

static int wrap(
    sqlite3_file *file, sqlite3_file *real, const char *name, keychain_file_identity identity, int flags, bool has_own_locks) {
    if (flags & SQLITE_OPEN_MAIN_DB) {
        return keychain_checksummed_file_wrap((keychain_checksummed_file *)file, real, name, identity, has_own_locks);
    }
    keychain_checksummed_file *database = keychain_checksummed_file_of(sqlite3_database_file_object(name));
    keychain_wal_file_wrap((keychain_wal_file *)file, real, name, identity, database);
    return SQLITE_OK;
}

/* Opens a file, and determines which file was opened: the one that has the name before and after the call. So a file that did not exist is
   opened twice. */
static int open_identified(
    sqlite3_vfs *base, const char *name, sqlite3_file *real, int flags, int *opened_flags, keychain_file_identity *identity) {
    for (int attempt = 0; attempt < 10; attempt++) {
        keychain_file_identity before = keychain_file_identity_of(name);
        memset(real, 0, (size_t)base->szOsFile);
        int code = base->xOpen(base, name, real, flags, opened_flags);
        if (code != SQLITE_OK) return code;
        *identity = keychain_file_identity_of(name);
        if (keychain_file_identities_match(before, *identity)) return SQLITE_OK;
        (void)real->pMethods->xClose(real);
        real->pMethods = NULL;
    }
    return SQLITE_CANTOPEN;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *opened_flags) {
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))) return below(vfs)->xOpen(below(vfs), name, file, flags, opened_flags);
    sqlite3_file *real = (sqlite3_file *)((char *)file + HEAD_BYTE_COUNT);
    memset(file, 0, (size_t)vfs->szOsFile);
    if (!name) return SQLITE_CANTOPEN;
    for (int attempt = 0; attempt < 10; attempt++) {
        keychain_file_identity identity = {.is_known = false};
        int code = open_identified(below(vfs), name, real, flags, opened_flags, &identity);
        /* SQLite closes a file that has methods, even if opening it failed. */
        int wrapped = real->pMethods ? wrap(file, real, name, identity, flags, is_system_vfs(below(vfs))) : SQLITE_OK;
        if (code != SQLITE_OK || wrapped != SQLITE_NOTFOUND) return code == SQLITE_OK ? wrapped : code;
        /* Replaced meanwhile: locks on the new file would not be on the one that was opened. */
        (void)file->pMethods->xClose(file);
    }
    return SQLITE_CANTOPEN;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs) { return below(vfs)->xDelete(below(vfs), name, syncs); }
static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    /* A store has no rollback journal. SQLite would apply that of another program in a read, and delete any file that it names. */
    static const char suffix[] = "-journal";
    size_t length = strlen(name);
    if (length >= sizeof suffix && strcmp(name + length - (sizeof suffix - 1), suffix) == 0) {
        *result = 0;
        return SQLITE_OK;
    }
    return below(vfs)->xAccess(below(vfs), name, flags, result);
}
static int full_path(sqlite3_vfs *vfs, const char *name, int byte_count, char *path) {
    return below(vfs)->xFullPathname(below(vfs), name, byte_count, path);
}
static int randomness(sqlite3_vfs *vfs, int byte_count, char *bytes) { return below(vfs)->xRandomness(below(vfs), byte_count, bytes); }
static int sleep_for(sqlite3_vfs *vfs, int microseconds) { return below(vfs)->xSleep(below(vfs), microseconds); }
static int current_time(sqlite3_vfs *vfs, double *days) { return below(vfs)->xCurrentTime(below(vfs), days); }
static int last_error(sqlite3_vfs *vfs, int byte_count, char *text) { return below(vfs)->xGetLastError(below(vfs), byte_count, text); }
static int current_time_milliseconds(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    sqlite3_vfs *base = below(vfs);
    if (base->iVersion >= 2 && base->xCurrentTimeInt64) return base->xCurrentTimeInt64(base, time);
    double days = 0;
    int code = base->xCurrentTime(base, &days);
    *time = (sqlite3_int64)(days * 86400000.0);
    return code;
}

static sqlite3_vfs *make(sqlite3_vfs *base, const char *name) {
    sqlite3_vfs *vfs = calloc(1, sizeof *vfs);
    if (!vfs) return NULL;
    /* Without the methods that load extensions: a store loads none. */
    *vfs = (sqlite3_vfs){
        .iVersion = 2, .szOsFile = HEAD_BYTE_COUNT + base->szOsFile, .mxPathname = base->mxPathname, .zName = name, .pAppData = base,
        .xOpen = open_file, .xDelete = delete_file, .xAccess = access_file, .xFullPathname = full_path, .xRandomness = randomness,
        .xSleep = sleep_for, .xCurrentTime = current_time, .xGetLastError = last_error,
        .xCurrentTimeInt64 = current_time_milliseconds};
    return vfs;
}

const char *keychain_page_checksums_vfs(const char *base_name) {
    /* The VFS and its name are never freed: SQLite and open connections keep pointers to them. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char name[256];
    int length = base_name ? snprintf(name, sizeof name, NAME ":%s", base_name) : snprintf(name, sizeof name, NAME);
    if (length < 0 || (size_t)length >= sizeof name) return NULL;
    pthread_mutex_lock(&lock);
    sqlite3_vfs *vfs = sqlite3_vfs_find(name);
    sqlite3_vfs *base = vfs ? NULL : sqlite3_vfs_find(base_name);
    if (base) {
        char *kept_name = strdup(name);
        vfs = kept_name ? make(base, kept_name) : NULL;
        if (!vfs || sqlite3_vfs_register(vfs, 0) != SQLITE_OK) {
            free(vfs);
            free(kept_name);
            vfs = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return vfs ? vfs->zName : NULL;
}

/* MARK: Functions for users of a connection */

int keychain_page_checksums_check(sqlite3 *database) {
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_CHECK, NULL);
}

int keychain_page_checksums_ignore(sqlite3 *database) {
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_READ_UNVERIFIED, NULL);
}

int keychain_page_checksums_read_damaged_as_empty(sqlite3 *database, bool is_on) {
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_READ_DAMAGED_AS_EMPTY, &is_on);
}

int keychain_first_page_is_damaged(sqlite3 *database, bool *is_damaged) {
    *is_damaged = false;
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_FIRST_IS_DAMAGED, is_damaged);
}

int keychain_lost_files(sqlite3 *database, int *lost) {
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    const keychain_checksummed_file *main_file = keychain_checksummed_file_of(file);
    *lost = main_file ? keychain_checksummed_file_lost(main_file) : 0;
    return code;
}

static int find_main_file(sqlite3 *database, keychain_checksummed_file **main_file) {
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    *main_file = keychain_checksummed_file_of(file);
    return code == SQLITE_OK && !*main_file ? SQLITE_MISUSE : code;
}

int keychain_get_own_writes(sqlite3 *database, keychain_own_writes *main_file, keychain_own_writes *wal) {
    keychain_checksummed_file *file;
    int code = find_main_file(database, &file);
    if (code != SQLITE_OK) return code;
    *main_file = file->own_writes;
    *wal = file->own_wal_writes;
    return SQLITE_OK;
}

int keychain_forget_own_writes(sqlite3 *database) {
    keychain_checksummed_file *file;
    int code = find_main_file(database, &file);
    if (code == SQLITE_OK) file->own_writes = file->own_wal_writes = (keychain_own_writes){.before = {.is_known = false}};
    return code;
}

int keychain_is_written(sqlite3 *database) {
    /* The bytes of the locks of writers and of checkpoints. */
    enum { FIRST = 0, COUNT = 2 };
    keychain_checksummed_file *file;
    int code = find_main_file(database, &file);
    /* There are no locks before the -shm file is mapped. */
    if (code != SQLITE_OK || !file->shared_memory.is_known) return code;
    code = file->base.pMethods->xShmLock(&file->base, FIRST, COUNT, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
    return code == SQLITE_OK ? file->base.pMethods->xShmLock(&file->base, FIRST, COUNT, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) : code;
}

static int64_t big_endian(const uint8_t *bytes) {
    return (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 | bytes[3];
}

/* Gets the base VFS's file of the -wal file that SQLite has open, or NULL. */
static int find_wal(sqlite3 *database, sqlite3_file **wal) {
    *wal = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, wal);
    *wal = code == SQLITE_OK && *wal && (*wal)->pMethods ? keychain_wal_file_base(*wal) : NULL;
    return code;
}

/* Whether the -wal file has a version of that page. Then the one in the database is obsolete, and a checkpoint may be writing it now. */
static int find_in_wal(sqlite3 *database, int64_t page, bool *is_there) {
    sqlite3_file *wal;
    uint8_t header[KEYCHAIN_WAL_HEADER_BYTE_COUNT], frame[KEYCHAIN_FRAME_HEADER_BYTE_COUNT];
    *is_there = false;
    int code = find_wal(database, &wal);
    if (!wal) return code;
    code = wal->pMethods->xRead(wal, header, sizeof header, 0);
    if (code == SQLITE_OK && memcmp(header, "\x37\x7f\x06", 3) != 0) return SQLITE_OK;
    for (sqlite3_int64 number = 1; code == SQLITE_OK; number++) {
        code = wal->pMethods->xRead(wal, frame, sizeof frame, keychain_frame_offset(number));
        /* After the last frame come leftover frames from before the file was restarted. They have other salts. */
        if (code != SQLITE_OK || memcmp(frame + 8, header + 16, 8) != 0) break;
        if (big_endian(frame) == page) {
            *is_there = true;
            break;
        }
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_wal_damage(sqlite3 *database, int64_t *unreachable_count, int64_t *sound_byte_count) {
    sqlite3_file *wal;
    *unreachable_count = *sound_byte_count = 0;
    int code = find_wal(database, &wal);
    /* Another process may append to or restart the file during the scan. Damage is found at the same offset twice; the moving end of the file
       is not. */
    int64_t earlier_byte_count = -1;
    for (int attempt = 0; wal && code == SQLITE_OK && attempt < 10; attempt++) {
        code = keychain_wal_count_unreachable(wal, unreachable_count, sound_byte_count);
        if (code != SQLITE_OK || *unreachable_count == 0 || *sound_byte_count == earlier_byte_count) break;
        earlier_byte_count = *sound_byte_count;
        *unreachable_count = 0;
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

/* Offsets in the index of the -wal file. Source: SQLite, "WAL-mode File Format", section 2.1. */
enum { INDEX_LAST_FRAME = 16, INDEX_SALTS = 32, INDEX_BYTE_COUNT = 48 };

int keychain_wal_committed_byte_count(sqlite3 *database, int64_t *byte_count) {
    sqlite3_file *wal, *file = NULL;
    *byte_count = 0;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    const keychain_checksummed_file *main_file = keychain_checksummed_file_of(file);
    if (code == SQLITE_OK) code = find_wal(database, &wal);
    if (code != SQLITE_OK) return code;
    const volatile uint8_t *shared = main_file ? keychain_wal_index_header(&main_file->index) : NULL;
    if (!wal || !shared) return SQLITE_MISUSE;
    uint8_t index[INDEX_BYTE_COUNT], header[KEYCHAIN_WAL_HEADER_BYTE_COUNT];
    for (int byte = 0; byte < INDEX_BYTE_COUNT; byte++) index[byte] = shared[byte];
    uint32_t last_frame;
    memcpy(&last_frame, index + INDEX_LAST_FRAME, sizeof last_frame);
    if (last_frame == 0) return SQLITE_OK;
    sqlite3_int64 end = keychain_frame_offset((sqlite3_int64)last_frame + 1), present = 0;
    code = wal->pMethods->xRead(wal, header, sizeof header, 0);
    if (code == SQLITE_OK) code = wal->pMethods->xFileSize(wal, &present);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
    if (present < end || memcmp(header + 16, index + INDEX_SALTS, 8) != 0) return KEYCHAIN_WAL_IS_LOST;
    *byte_count = end;
    return SQLITE_OK;
}

int keychain_wal_frame_count(sqlite3 *database, int64_t *count) {
    keychain_checksummed_file *file;
    int code = find_main_file(database, &file);
    *count = code == SQLITE_OK ? keychain_wal_index_frame_count(&file->index) : 0;
    return code;
}

int keychain_wal_hides_commits(sqlite3 *database, bool *result) {
    keychain_checksummed_file *file;
    sqlite3_file *wal;
    *result = false;
    int code = find_main_file(database, &file);
    if (code == SQLITE_OK) code = find_wal(database, &wal);
    const volatile uint8_t *index = code == SQLITE_OK ? keychain_wal_index_header(&file->index) : NULL;
    if (code != SQLITE_OK || !wal || !index) return code;
    uint8_t header[INDEX_BYTE_COUNT], salts[8];
    for (int byte = 0; byte < INDEX_BYTE_COUNT; byte++) header[byte] = index[byte];
    uint32_t last_frame;
    memcpy(&last_frame, header + INDEX_LAST_FRAME, sizeof last_frame);
    code = wal->pMethods->xRead(wal, salts, sizeof salts, 16);
    /* After the index was restarted, the file still has frames with the salts from before. */
    bool is_restarted = code == SQLITE_OK && memcmp(salts, header + INDEX_SALTS, sizeof salts) != 0;
    if (code != SQLITE_OK || is_restarted) return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
    return keychain_wal_commits_after(wal, last_frame, result);
}

int keychain_page_checksums_next_damaged(sqlite3 *database, int64_t after, int64_t *page) {
    while (true) {
        sqlite3_int64 number = after, again = 0;
        int code = sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED, &number);
        *page = number;
        if (code != SQLITE_OK || number == 0) return code;
        bool is_in_wal = false;
        code = find_in_wal(database, number, &is_in_wal);
        if (code != SQLITE_OK) return code;
        /* Verified again: if the -wal file has no version of the page, no checkpoint can be writing it. */
        again = number - 1;
        if (!is_in_wal) code = sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED, &again);
        if (code != SQLITE_OK || (!is_in_wal && again == number)) return code;
        after = number;
    }
}
