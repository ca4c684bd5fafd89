/* SPDX-License-Identifier: Apache-2.0 */
/* The main database file, as the VFS opens it: pages get a checksum when written, and are verified when read. */
#ifndef KEYCHAIN_DATABASE_FILE_H
#define KEYCHAIN_DATABASE_FILE_H

#include <sqlite3.h>

#include "page_checksums.h"
#include "wal_file.h"

enum keychain_page_state {
    /* The file is still empty. Its pages get checksums. */
    KEYCHAIN_PAGES_UNKNOWN,
    /* Not a store. Its pages are left unchanged. */
    KEYCHAIN_PAGES_FOREIGN,
    /* A store. Pages get checksums and are verified. This state is final, whatever is read later. */
    KEYCHAIN_PAGES_CHECKED
};

typedef struct {
    sqlite3_file base;
    /* The base VFS's file, which follows this one in memory. */
    sqlite3_file *real;
    enum keychain_page_state state;
    /* The database's -wal file while it is open, or NULL. */
    keychain_wal_file *wal;
} keychain_checksummed_file;

/* Operations of xFileControl. SQLite reserves only the numbers up to 100. */
enum {
    KEYCHAIN_FILE_CONTROL_CHECK = 0x4B434801,
    /* Takes a page number; sets it to the number of the next page with a wrong checksum, or to 0. */
    KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED
};

/* Whether the file was wrapped by keychain_checksummed_file_wrap. */
bool keychain_checksummed_file_is_ours(const sqlite3_file *file);

/* Wraps a file of the base VFS that is open. */
void keychain_checksummed_file_wrap(keychain_checksummed_file *file, sqlite3_file *real);

#endif
