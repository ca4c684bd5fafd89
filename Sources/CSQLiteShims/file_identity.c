/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "file_identity.h"

#include <sys/stat.h>

keychain_file_identity keychain_file_identity_of(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) return (keychain_file_identity){.is_known = false};
    return (keychain_file_identity){.is_known = true, .device = (uint64_t)status.st_dev, .inode = (uint64_t)status.st_ino};
}

static int64_t nanoseconds(struct timespec time) { return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec; }

keychain_file_stamp keychain_file_stamp_of(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) return (keychain_file_stamp){.is_known = false};
    return (keychain_file_stamp){
        .is_known = true,
        .device = (uint64_t)status.st_dev,
        .inode = (uint64_t)status.st_ino,
        .byte_count = status.st_size,
        .modification_nanoseconds = nanoseconds(status.st_mtim),
        .change_nanoseconds = nanoseconds(status.st_ctim)};
}
