/* SPDX-License-Identifier: Apache-2.0 */
/* A -wal file between SQLite and the layer below. */
#ifndef KEYCHAIN_LOG_FILE_H
#define KEYCHAIN_LOG_FILE_H

#include <sqlite3.h>

typedef struct keychain_wal_file {
    sqlite3_file base;
    /* The file of the layer below; it lies behind this one. */
    sqlite3_file *real;
    /* Where the main file notes this one, for as long as it is open. */
    struct keychain_wal_file **noted_at;
    /* The first frame of the transaction that is being written here, from 1: SQLite gives its frames their checksums only at the end. 0: none. */
    sqlite3_int64 first_uncommitted_frame;
} keychain_wal_file;

/* Makes the file ours, once the one below it is open. */
void keychain_wal_file_wrap(keychain_wal_file *file, sqlite3_file *real, keychain_wal_file **noted_at);

/* The transaction is over, however it ended. */
void keychain_wal_file_end_transaction(keychain_wal_file *file);

/* The file below, of one that is ours. */
sqlite3_file *keychain_wal_file_base(sqlite3_file *file);

#endif
