/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a -wal file, and whether it is what was written.
   Source: SQLite, "Database File Format", section 4. */
#ifndef KEYCHAIN_LOG_FRAMES_H
#define KEYCHAIN_LOG_FRAMES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "page_checksums.h"

enum {
    KEYCHAIN_WAL_HEADER_BYTE_COUNT = 32,
    KEYCHAIN_FRAME_HEADER_BYTE_COUNT = 24,
    KEYCHAIN_FRAME_BYTE_COUNT = KEYCHAIN_FRAME_HEADER_BYTE_COUNT + KEYCHAIN_PAGE_BYTE_COUNT
};

static inline sqlite3_int64 keychain_frame_offset(sqlite3_int64 number) {
    return KEYCHAIN_WAL_HEADER_BYTE_COUNT + (number - 1) * KEYCHAIN_FRAME_BYTE_COUNT;
}

/* The number of the frame, from 1, that `offset` lies `inset` bytes behind the begin of; 0: none. */
static inline sqlite3_int64 keychain_frame_number(sqlite3_int64 offset, int inset) {
    sqlite3_int64 behind = offset - inset - KEYCHAIN_WAL_HEADER_BYTE_COUNT;
    return behind >= 0 && behind % KEYCHAIN_FRAME_BYTE_COUNT == 0 ? behind / KEYCHAIN_FRAME_BYTE_COUNT + 1 : 0;
}

/* Not 0 in the last frame of a transaction: the size of the database after it, in pages. */
static inline bool keychain_frame_commits(const uint8_t *header) { return (header[4] | header[5] | header[6] | header[7]) != 0; }

/* Reads the page in the frame of that number. SQLITE_IOERR_DATA: it is not what was written. The frame before it is not being written. */
int keychain_wal_read_page(sqlite3_file *log, sqlite3_int64 number, uint8_t *page);

/* Counts the transactions that were durable and lie behind damage, where SQLite takes the file to end; 0 if there is no damage. One that
   was being written when the system stopped is none. `sound_byte_count` is where SQLite takes it to end. Nobody begins the file anew meanwhile. */
int keychain_wal_count_unreachable(sqlite3_file *log, int64_t *count, int64_t *sound_byte_count);

#endif
