/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a connection on the database file and on the -shm file, on the bytes that SQLite locks.

   The locks of SQLite's own VFS belong to the process. When any part of the program closes any descriptor of such a file, for example after
   copying it to a backup, the kernel drops all of them, and another process takes itself for the only one. Those of an open file description
   belong to the connection. Both kinds exclude each other. Source of the bytes and of their order: SQLite, "File Locking And Concurrency In SQLite
   Version 3", and "WAL-mode File Format", section 2.3. */
#ifndef KEYCHAIN_FILE_LOCKS_H
#define KEYCHAIN_FILE_LOCKS_H

#include <stdbool.h>

#include "file_identity.h"

typedef struct keychain_file_locks {
    /* The descriptors on which the locks are. Without the first one, the kernel has no such locks, and the base VFS locks the files. Without the
       second one, it locks the -shm file, or there is none. */
    int database, shared_memory;
    keychain_file_identity database_identity, shared_memory_identity;
    /* SQLITE_LOCK_NONE to SQLITE_LOCK_EXCLUSIVE. */
    int level;
    /* Whether this is in the list of locks that a child process closes. */
    bool is_listed;
    struct keychain_file_locks *next;
} keychain_file_locks;

/* Opens the descriptor for the locks on the database, which is the file of this identity. `locks` stays where it is until it is closed. Returns a
   result code of SQLite: SQLITE_NOTFOUND if the path does not lead to this file any more. */
int keychain_file_locks_open(keychain_file_locks *locks, const char *path, keychain_file_identity identity);
/* Ends all locks. */
void keychain_file_locks_close(keychain_file_locks *locks);

static inline bool keychain_file_locks_are_used(const keychain_file_locks *locks) { return locks->database >= 0; }

/* The functions below return a result code of SQLite: SQLITE_BUSY if another connection is in the way. They do not wait. */

int keychain_file_locks_raise(keychain_file_locks *locks, int level);
int keychain_file_locks_lower(keychain_file_locks *locks, int level);
int keychain_file_locks_is_reserved(const keychain_file_locks *locks, int *result);

/* Begins to lock the -shm file of this identity, which is mapped: no process truncates it while it is locked. */
int keychain_file_locks_share(keychain_file_locks *locks, const char *path, keychain_file_identity identity);
void keychain_file_locks_end_sharing(keychain_file_locks *locks);
/* Takes the arguments of xShmLock. */
int keychain_file_locks_lock_shared(const keychain_file_locks *locks, int first, int count, int flags);

#endif
