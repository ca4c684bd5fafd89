/* SPDX-License-Identifier: Apache-2.0 */
/* The -wal file, as the VFS opens it: each page is verified when it is read.
   Source of the format: SQLite, "Database File Format", section 4. */
#ifndef KEYCHAIN_WAL_FILE_H
#define KEYCHAIN_WAL_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "file_identity.h"
#include "page_checksums.h"

struct keychain_checksummed_file;

typedef struct {
    sqlite3_file base;
    /* The base VFS's file, which follows this one in memory. */
    sqlite3_file *real;
    /* SQLite's name of the file, which stays valid while the file is open, and the file that was opened. */
    const char *name;
    keychain_file_identity identity;
    /* The database, or NULL. It is closed after this file. */
    struct keychain_checksummed_file *database;
    /* The first frame of the transaction being written through this file, counted from 1; 0: none. SQLite computes the checksums of these
       frames only when it commits, so they cannot be verified earlier. */
    sqlite3_int64 first_uncommitted_frame;
    /* The last frame that was committed through this file since its last read transaction began; 0: none. */
    sqlite3_int64 last_committed_frame;
} keychain_wal_file;

/* Wraps a file of the base VFS that is open, and registers it with its database. */
void keychain_wal_file_wrap(
    keychain_wal_file *file, sqlite3_file *real, const char *name, keychain_file_identity identity,
    struct keychain_checksummed_file *database);

/* Notes the end of the write transaction, whether it was committed or rolled back. */
void keychain_wal_file_end_transaction(keychain_wal_file *file);

/* Returns the base VFS's file of a wrapped file, and any other file unchanged. */
sqlite3_file *keychain_wal_file_base(sqlite3_file *file);

/* MARK: Frames. `wal` is a file of the base VFS in the functions below. */

enum {
    KEYCHAIN_WAL_HEADER_BYTE_COUNT = 32,
    KEYCHAIN_FRAME_HEADER_BYTE_COUNT = 24,
    KEYCHAIN_FRAME_BYTE_COUNT = KEYCHAIN_FRAME_HEADER_BYTE_COUNT + KEYCHAIN_PAGE_BYTE_COUNT
};

static inline sqlite3_int64 keychain_frame_offset(sqlite3_int64 number) {
    return KEYCHAIN_WAL_HEADER_BYTE_COUNT + (number - 1) * KEYCHAIN_FRAME_BYTE_COUNT;
}

/* Counts the durable transactions after a damaged frame, where SQLite would end its search; 0 if there is no damage. A transaction whose write
   was interrupted is not counted. `sound_byte_count` is the offset at which SQLite would end its search. Nothing may restart the file meanwhile. */
int keychain_wal_count_unreachable(sqlite3_file *wal, int64_t *count, int64_t *sound_byte_count);

/* Whether the frames after `last_frame` continue the file up to a commit. Nothing may append to or restart the file meanwhile. */
int keychain_wal_commits_after(sqlite3_file *wal, uint32_t last_frame, bool *result);

/* Reads and verifies the page in the frame of that number, and sets `page_number` to the number of the page. SQLITE_IOERR_DATA: it is damaged. No
   thread may be writing the frame before it. `index`: the beginning of the -shm file, or NULL. It may not change its salts while SQLite reads a
   frame, so if the file has other salts or ends before the frame, it is another one. */
int keychain_wal_read_frame(
    sqlite3_file *wal, const volatile uint8_t *index, sqlite3_int64 number, uint8_t *page, uint32_t *page_number);

#endif
