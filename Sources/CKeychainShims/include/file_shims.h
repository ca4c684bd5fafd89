/* SPDX-License-Identifier: Apache-2.0 */
/* What a store in a file needs from the system: whether this process is a forked copy, which file system a path is on. */
#ifndef KEYCHAIN_FILE_SHIMS_H
#define KEYCHAIN_FILE_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero in every process that was forked from one that called keychain_fork_guard_install(); NULL before that call. */
extern volatile const unsigned char *volatile keychain_fork_guard_page;

/* Marks this process as the one that owns open databases. Calling it again does nothing. False: no memory. */
bool keychain_fork_guard_install(void);

/* Whether this process is a fork, without exec, of a marked one. Costs two loads. */
static inline bool keychain_process_is_forked(void) {
    volatile const unsigned char *mark = keychain_fork_guard_page;
    return mark != NULL && *mark == 0;
}

/* The type of the file system that holds `path`, as in statfs(2). Returns 0 or an errno value. */
int keychain_file_system_type(const char *path, uint32_t *type);

/* Locks a database, opened to write, against every connection of SQLite's, until the descriptor is closed. Returns 0 or an errno value: EAGAIN
   when somebody has it open. Waits for nobody. */
int keychain_file_try_lock(int descriptor);

#endif
