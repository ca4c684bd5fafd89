/* SPDX-License-Identifier: Apache-2.0 */
/* A main database file between SQLite and the layer below. */
#ifndef KEYCHAIN_PAGE_CHECKSUMS_FILE_H
#define KEYCHAIN_PAGE_CHECKSUMS_FILE_H

#include <sqlite3.h>

#include "log_file.h"
#include "page_checksums.h"

enum keychain_page_state {
    /* The file has no first page yet: it is being made, and its pages get checksums. */
    KEYCHAIN_PAGES_UNKNOWN,
    /* Not a store: its pages are left as they are. */
    KEYCHAIN_PAGES_FOREIGN,
    /* A store of format 1: pages get checksums, which nobody looks at. */
    KEYCHAIN_PAGES_STAMPED,
    /* A store: pages get checksums and are checked. It stays one, whatever is read later. */
    KEYCHAIN_PAGES_CHECKED
};

typedef struct {
    sqlite3_file base;
    /* The file of the layer below; it lies behind this one. */
    sqlite3_file *real;
    enum keychain_page_state state;
    /* Its -wal file, while that is open. */
    keychain_wal_file *log;
} keychain_checksummed_file;

/* Operations of xFileControl; SQLite leaves all above 100 to others. */
enum {
    KEYCHAIN_FILE_CONTROL_CHECK = 0x4B434801,
    KEYCHAIN_FILE_CONTROL_STAMP,
    /* Takes a page number, and sets it to that of the next page whose checksum is wrong, or to 0. */
    KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED
};

/* Whether the file is one that was made ours. */
bool keychain_checksummed_file_is_ours(const sqlite3_file *file);

/* Makes the file ours, once the one below it is open. */
void keychain_checksummed_file_wrap(keychain_checksummed_file *file, sqlite3_file *real);

#endif
