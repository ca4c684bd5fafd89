/* SPDX-License-Identifier: Apache-2.0 */
/* The main database file, as the VFS opens it: pages get a checksum when written, and are verified when read. */
#ifndef KEYCHAIN_DATABASE_FILE_H
#define KEYCHAIN_DATABASE_FILE_H

#include <sqlite3.h>

#include "file_identity.h"
#include "file_locks.h"
#include "page_checksums.h"
#include "wal_file.h"
#include "wal_frames.h"

enum keychain_page_state {
    /* The file is still empty. Its pages get checksums. */
    KEYCHAIN_PAGES_UNKNOWN,
    /* Not a store. Its pages are left unchanged. */
    KEYCHAIN_PAGES_FOREIGN,
    /* A store. Pages get checksums and are verified. This state is final, whatever is read later. */
    KEYCHAIN_PAGES_CHECKED,
    /* A store whose pages are read without verification, to save what is left. Pages that are written get checksums. This state is final. */
    KEYCHAIN_PAGES_UNVERIFIED
};

typedef struct keychain_checksummed_file {
    sqlite3_file base;
    /* The base VFS's file, which follows this one in memory. */
    sqlite3_file *real;
    enum keychain_page_state state;
    /* Whether a page with a wrong checksum is read as an empty page of an index, so that the table can be emptied. */
    bool reads_damaged_as_empty;
    /* SQLite's name of the file, which stays valid while the file is open, and the file that was opened. */
    const char *name;
    keychain_file_identity identity;
    keychain_file_locks locks;
    /* The database's -wal file while it is open, or NULL. */
    keychain_wal_file *wal;
    /* The -shm file that is mapped. The connections of a process to one file share the mapping. */
    keychain_file_identity shared_memory;
    /* What this connection has written into this file and into the -wal file. */
    keychain_own_writes own_writes, own_wal_writes;
    /* What is mapped: the index of the -wal file. */
    keychain_wal_index index;
    /* The frames that the connection may read. */
    keychain_frame_map frames;
    /* Whether the transaction has the lock of readers that need no frame. It does not keep others from overwriting the frames in the map. */
    bool lets_others_restart;
    /* The salts of the index when the checkpoint or the write lock was taken, before SQLite copies the header of the index. */
    uint8_t salts_of_checkpoint[8];
    /* Whether a checkpoint is running, which may read frames that were committed after those in the map. */
    bool is_checkpointing;
    /* The next file of this process with a mapping. */
    struct keychain_checksummed_file *next_sharing;
} keychain_checksummed_file;

/* Operations of xFileControl. SQLite reserves only the numbers up to 100. */
enum {
    KEYCHAIN_FILE_CONTROL_CHECK = 0x4B434801,
    KEYCHAIN_FILE_CONTROL_READ_UNVERIFIED,
    /* Takes a bool: whether a page with a wrong checksum is read as an empty page of an index. */
    KEYCHAIN_FILE_CONTROL_READ_DAMAGED_AS_EMPTY,
    /* Takes a page number; sets it to the number of the next page with a wrong checksum, or to 0. */
    KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED,
    /* Sets a bool: whether the first page has a wrong checksum and one of the next pages a correct one. */
    KEYCHAIN_FILE_CONTROL_FIRST_IS_DAMAGED
};

/* Returns the file if it was wrapped by keychain_checksummed_file_wrap, and otherwise NULL. */
keychain_checksummed_file *keychain_checksummed_file_of(sqlite3_file *file);

/* Wraps a file of the base VFS that is open. `has_own_locks`: not those of the base VFS. Returns a result code of SQLite: SQLITE_NOTFOUND if the
   name does not lead to this file any more. */
int keychain_checksummed_file_wrap(
    keychain_checksummed_file *file, sqlite3_file *real, const char *name, keychain_file_identity identity, bool has_own_locks);

/* Compares a frame that SQLite has read with the map of frames. `page`: the page number in the frame. Returns SQLITE_OK, or
   KEYCHAIN_WAL_INDEX_IS_WRONG. */
int keychain_checksummed_file_expect_newest(const keychain_checksummed_file *file, sqlite3_int64 frame, uint32_t page);

/* The open files whose names no longer lead to them: a combination of enum keychain_lost_file. */
int keychain_checksummed_file_lost(const keychain_checksummed_file *file);

#endif
