/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEYCHAIN_CSQLITE_SHIM_H
#define KEYCHAIN_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Sets a Boolean option with sqlite3_db_config, a variadic function that Swift cannot call. */
static inline int keychain_sqlite3_set_flag(sqlite3 *database, int option, int is_on) {
    return sqlite3_db_config(database, option, is_on, (int *)0);
}

#endif
