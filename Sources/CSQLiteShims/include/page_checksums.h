/* SPDX-License-Identifier: Apache-2.0 */
/* Page checksums for a SQLite database file. SQLite has none of its own, and would read a damaged page as if rows were missing.

   The checksums are computed and verified by a VFS, SQLite's interface to the file system, which wraps another VFS. It changes nothing but the
   last 16 bytes of each page of the main database file, which SQLite leaves unused in a store. Frames of the -wal file have checksums of
   SQLite's own. The VFS verifies them more often than SQLite does: on every read of a page, and beyond the place where SQLite would end its
   search for the last valid frame. */
#ifndef KEYCHAIN_PAGE_CHECKSUMS_H
#define KEYCHAIN_PAGE_CHECKSUMS_H

#include <stdbool.h>
#include <stdint.h>

#define KEYCHAIN_PAGE_BYTE_COUNT 4096
#define KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT 16

/* An extended code of SQLITE_IOERR that SQLite does not define: SQLite would ignore durable transactions in a damaged -wal file. */
#define KEYCHAIN_WAL_IS_DAMAGED (10 | 0xC1 << 8)

/* Another one: the -wal file is not the one that the -shm file describes. It was removed, replaced, or truncated while a process used it. */
#define KEYCHAIN_WAL_IS_LOST (10 | 0xC2 << 8)

/* Another one: the index in the -shm file contradicts the frames of the -wal file or the database. SQLite would ignore committed frames. */
#define KEYCHAIN_WAL_INDEX_IS_WRONG (10 | 0xC3 << 8)

/* Open files of a database whose names do not lead to them. */
enum keychain_lost_file {
    KEYCHAIN_DATABASE_LOST = 1,
    KEYCHAIN_WAL_LOST = 2,
    KEYCHAIN_SHM_LOST = 4
};

/* The size and the times of a file at one moment. */
typedef struct {
    bool is_known;
    uint64_t device, inode;
    int64_t byte_count, modification_nanoseconds, change_nanoseconds;
} keychain_file_stamp;

/* A file before the first and after the last write of a connection; unknown if it wrote nothing. */
typedef struct {
    keychain_file_stamp before, after;
} keychain_own_writes;

struct sqlite3;

/* Registers the VFS over the one named `base` (NULL: the default VFS), once per process. Thread-safe.
   Returns its name, which stays valid, or NULL if there is no VFS of that name or no memory. */
const char *keychain_page_checksums_vfs(const char *base);

/* Computes the checksum of the page with that number, counted from 1, into the 16 bytes at `checksum`. */
void keychain_page_checksum(const uint8_t *page, uint64_t number, uint8_t *checksum);

/* The functions below require a database that was opened through the VFS, and return a result code of SQLite. */

/* Enables verification of every page of the main file, whatever its first page contains. */
int keychain_page_checksums_check(struct sqlite3 *database);

/* Reads every page of the main file without verification, whatever its first page contains. */
int keychain_page_checksums_ignore(struct sqlite3 *database);

/* Whether pages of the main file with a wrong checksum are read as empty pages of an index, except the first page. For emptying a table whose
   content may be lost, and nothing else: any other statement would lose rows. */
int keychain_page_checksums_read_damaged_as_empty(struct sqlite3 *database, bool is_on);

/* Whether the first page of the main file has a wrong checksum, but one of the next pages a correct one. Then the file is a store, whatever its
   header says: no other program writes these checksums. */
int keychain_first_page_is_damaged(struct sqlite3 *database, bool *is_damaged);

/* Sets `lost` to a combination of enum keychain_lost_file, 0 if every open file has its name. */
int keychain_lost_files(struct sqlite3 *database, int *lost);

/* Gets what the connection has written into the main file and the -wal file since `keychain_forget_own_writes`. */
int keychain_get_own_writes(struct sqlite3 *database, keychain_own_writes *main_file, keychain_own_writes *wal);
int keychain_forget_own_writes(struct sqlite3 *database);

/* Returns SQLITE_BUSY if another connection writes or runs a checkpoint now, and SQLITE_OK if none does. */
int keychain_is_written(struct sqlite3 *database);

/* Gets the number of frames in the -wal file, including those that were copied into the database; 0 if the index is not mapped. */
int keychain_wal_frame_count(struct sqlite3 *database, int64_t *count);

/* Finds the first page after page number `after` that has a wrong checksum and no newer version in the -wal file; 0: none.
   Requires a read transaction, which keeps the -wal file from being restarted. */
int keychain_page_checksums_next_damaged(struct sqlite3 *database, int64_t after, int64_t *page);

/* Counts the durable transactions in the -wal file that are unreachable because of damage before them; 0: none. The first
   `sound_byte_count` bytes of the file are undamaged. */
int keychain_wal_damage(struct sqlite3 *database, int64_t *unreachable_count, int64_t *sound_byte_count);

/* Finds the end of the committed frames in the -wal file; 0: there are none. Requires a write transaction. Returns KEYCHAIN_WAL_IS_LOST if the
   -wal file that this connection has open is not the one that the -shm file describes. */
int keychain_wal_committed_byte_count(struct sqlite3 *database, int64_t *byte_count);

/* Whether committed frames follow the last one that the -shm file names. Without an alteration, they are of a process that is committing, or was
   killed while it committed. Requires a transaction. */
int keychain_wal_hides_commits(struct sqlite3 *database, bool *result);

#endif
