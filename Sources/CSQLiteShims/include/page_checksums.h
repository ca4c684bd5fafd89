/* SPDX-License-Identifier: Apache-2.0 */
/* A checksum in each page of a database file: SQLite itself has none, and would take damage for rows that are not there.

   The layer lies between SQLite and another layer for files (a VFS). It changes nothing but the last 16 bytes of each page of the main
   file, which a store keeps free. The -wal file has checksums of SQLite's own, which the layer compares more often than SQLite does: at each
   read of a page, and beyond the place where SQLite would take the file to end. */
#ifndef KEYCHAIN_PAGE_CHECKSUMS_H
#define KEYCHAIN_PAGE_CHECKSUMS_H

#include <stdbool.h>
#include <stdint.h>

#define KEYCHAIN_PAGE_BYTE_COUNT 4096
#define KEYCHAIN_PAGE_CHECKSUM_BYTE_COUNT 16

/* Given where SQLite would leave out transactions of the -wal file that were durable: an extended code of SQLITE_IOERR that SQLite has not. */
#define KEYCHAIN_WAL_IS_DAMAGED (10 | 0xC1 << 8)

struct sqlite3;

/* Puts the layer over the one named `base` (NULL: the system's own), once; any thread may ask. Gives its name, which stays valid, or NULL
   when there is no such layer or no memory. */
const char *keychain_page_checksums_vfs(const char *base);

/* Computes the checksum of the page with that number, from 1, into the `checksum` of 16 bytes. */
void keychain_page_checksum(const uint8_t *page, uint64_t number, uint8_t *checksum);

/* The functions below take a database that was opened through the layer and answer a result code of SQLite. */

/* From now on every page of the main file is checked as it is read, whatever its first page says. */
int keychain_page_checksums_check(struct sqlite3 *database);

/* Puts the checksum into every page of the main file and flushes it. The caller has the file for itself. */
int keychain_page_checksums_stamp(struct sqlite3 *database);

/* Finds the first page behind `after` whose checksum is wrong, and whose content no log has; 0: none. Only within a read transaction:
   it keeps logs from being begun anew. */
int keychain_page_checksums_next_damaged(struct sqlite3 *database, int64_t after, int64_t *page);

/* Counts the transactions in the -wal file that were durable, and that damage before them cuts off; 0: none. Up to `sound_byte_count` the
   file is what was written. */
int keychain_wal_damage(struct sqlite3 *database, int64_t *unreachable_count, int64_t *sound_byte_count);

#endif
