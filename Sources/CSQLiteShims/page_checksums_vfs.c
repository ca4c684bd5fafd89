/* SPDX-License-Identifier: Apache-2.0 */
/* The layer as a whole: it opens main files and their -wal files as ours, and passes everything else on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page_checksums_file.h"

#define NAME "keychain-checksums"

/* The file below lies behind ours, where any type may lie. */
typedef union {
    keychain_checksummed_file main;
    keychain_wal_file log;
} head;
#define HEAD_BYTE_COUNT (((int)sizeof(head) + 15) / 16 * 16)

static sqlite3_vfs *below(sqlite3_vfs *vfs) { return vfs->pAppData; }

static void wrap(sqlite3_file *file, sqlite3_file *real, const char *name, int flags) {
    if (flags & SQLITE_OPEN_MAIN_DB) {
        keychain_checksummed_file_wrap((keychain_checksummed_file *)file, real);
        return;
    }
    sqlite3_file *main_file = sqlite3_database_file_object(name);
    bool is_ours = keychain_checksummed_file_is_ours(main_file);
    keychain_wal_file_wrap((keychain_wal_file *)file, real, is_ours ? &((keychain_checksummed_file *)main_file)->log : NULL);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *opened_flags) {
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))) return below(vfs)->xOpen(below(vfs), name, file, flags, opened_flags);
    sqlite3_file *real = (sqlite3_file *)((char *)file + HEAD_BYTE_COUNT);
    memset(file, 0, (size_t)vfs->szOsFile);
    int code = below(vfs)->xOpen(below(vfs), name, real, flags, opened_flags);
    /* A file that has methods is closed by SQLite, also after a failure. */
    if (real->pMethods) wrap(file, real, name, flags);
    return code;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs) { return below(vfs)->xDelete(below(vfs), name, syncs); }
static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
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
    /* Without the methods for libraries of code: a store loads none. */
    *vfs = (sqlite3_vfs){
        .iVersion = 2, .szOsFile = HEAD_BYTE_COUNT + base->szOsFile, .mxPathname = base->mxPathname, .zName = name, .pAppData = base,
        .xOpen = open_file, .xDelete = delete_file, .xAccess = access_file, .xFullPathname = full_path, .xRandomness = randomness,
        .xSleep = sleep_for, .xCurrentTime = current_time, .xGetLastError = last_error,
        .xCurrentTimeInt64 = current_time_milliseconds};
    return vfs;
}

const char *keychain_page_checksums_vfs(const char *base_name) {
    /* Both stay for as long as the process: SQLite keeps the pointers, and connections may. */
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
