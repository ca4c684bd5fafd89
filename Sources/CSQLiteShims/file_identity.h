/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a name leads to. SQLite keeps its files open and does not notice that one of them lost its name. */
#ifndef KEYCHAIN_FILE_IDENTITY_H
#define KEYCHAIN_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "page_checksums.h"

typedef struct {
    /* False: there is no file, or the name cannot be examined. */
    bool is_known;
    uint64_t device, inode;
} keychain_file_identity;

/* Examines a name without opening the file and without following a symbolic link. */
keychain_file_identity keychain_file_identity_of(const char *path);

/* Whether both are known and equal. The file of one of them must be open, so that its inode number cannot be reused. */
static inline bool keychain_file_identities_match(keychain_file_identity one, keychain_file_identity other) {
    return one.is_known && other.is_known && one.device == other.device && one.inode == other.inode;
}

/* Examines a name as keychain_file_identity_of does. */
keychain_file_stamp keychain_file_stamp_of(const char *path);

static inline void keychain_own_writes_begin(keychain_own_writes *writes, const char *path) {
    if (!writes->before.is_known) writes->before = keychain_file_stamp_of(path);
}

static inline void keychain_own_writes_end(keychain_own_writes *writes, const char *path) {
    if (writes->before.is_known) writes->after = keychain_file_stamp_of(path);
}

#endif
