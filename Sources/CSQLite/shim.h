/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEYCHAIN_CSQLITE_SHIM_H
#define KEYCHAIN_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Sets a Boolean option with sqlite3_db_config, a variadic function that Swift cannot call. */
static inline int keychain_sqlite3_set_flag(sqlite3 *database, int option, int is_on) {
    return sqlite3_db_config(database, option, is_on, (int *)0);
}

/* Binds UTF-8 without copying it; the bytes must outlive the binding. */
static inline int keychain_sqlite3_bind_text(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 byte_count) {
    return sqlite3_bind_text64(statement, index, (const char *)bytes, byte_count, SQLITE_STATIC, SQLITE_UTF8);
}

#endif
