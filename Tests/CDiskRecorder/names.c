/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements for the C library's functions on names: each records a change below the root, and then makes the system call. */
#define _GNU_SOURCE
#include "disk_recorder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    disk_path old_path, new_path;
    bool is_below = disk_is_below(to_directory, to, new_path);
    bool comes_from_below = disk_is_below(from_directory, from, old_path);
    if (!is_below) return (int)syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
    disk_lock();
    int result = -1;
    if (disk_fate_of(DISK_CHANGES, "link", new_path) != DISK_FAILS) {
        result = (int)syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
        if (result == 0) {
            disk_note(comes_from_below ? DISK_LINKED : DISK_UNKNOWN_CHANGE, 0, 0, old_path, new_path, "", 0);
            disk_linked(new_path);
        }
    }
    disk_unlock();
    return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    disk_path old_path, new_path;
    bool comes_from_below = disk_is_below(from_directory, from, old_path);
    bool is_below = disk_is_below(to_directory, to, new_path);
    if (!is_below && !comes_from_below) return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
    disk_lock();
    int result = -1;
    if (disk_fate_of(DISK_CHANGES, "rename", new_path) != DISK_FAILS) {
        result = (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
        /* The model has neither exchanges nor moves into or out of the root. */
        bool is_known = is_below && comes_from_below && (flags & ~1u) == 0;
        if (result == 0) disk_note(is_known ? DISK_RENAMED : DISK_UNKNOWN_CHANGE, 0, 0, old_path, new_path, "", 0);
    }
    disk_unlock();
    return result;
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    return renameat2(from_directory, from, to_directory, to, 0);
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int directory, const char *name, int flags) {
    disk_path path;
    if (!disk_is_below(directory, name, path)) return (int)syscall(SYS_unlinkat, directory, name, flags);
    disk_lock();
    int result = -1;
    if (disk_fate_of(DISK_CHANGES, "unlink", path) != DISK_FAILS) {
        result = (int)syscall(SYS_unlinkat, directory, name, flags);
        if (result == 0) disk_note(DISK_REMOVED, 0, 0, path, "", "", 0);
    }
    disk_unlock();
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int directory, const char *name, mode_t mode) {
    disk_path path;
    if (!disk_is_below(directory, name, path)) return (int)syscall(SYS_mkdirat, directory, name, mode);
    disk_lock();
    int result = -1;
    if (disk_fate_of(DISK_CHANGES, "mkdir", path) != DISK_FAILS) {
        result = (int)syscall(SYS_mkdirat, directory, name, mode);
        struct stat facts;
        if (result == 0 && syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0) == 0) {
            disk_note(DISK_DIRECTORY_MADE, facts.st_ino, 0, path, "", "", 0);
        }
    }
    disk_unlock();
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int symlinkat(const char *target, int directory, const char *name) {
    disk_path path;
    if (disk_is_below(directory, name, path)) {
        disk_lock();
        disk_note(DISK_UNKNOWN_CHANGE, 0, 0, "symlink", path, "", 0);
        disk_unlock();
    }
    return (int)syscall(SYS_symlinkat, target, directory, name);
}

int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

int truncate(const char *name, off_t byte_count) {
    disk_path path;
    if (disk_is_below(AT_FDCWD, name, path)) {
        disk_lock();
        disk_note(DISK_UNKNOWN_CHANGE, 0, 0, "truncate", path, "", 0);
        disk_unlock();
    }
    return (int)syscall(SYS_truncate, name, byte_count);
}

int truncate64(const char *name, off_t byte_count) __attribute__((alias("truncate")));

static bool look_fails(const char *name, const char *path) {
    disk_lock();
    bool fails = disk_fate_of(DISK_LOOKS, name, path) == DISK_FAILS;
    disk_unlock();
    return fails;
}

int lstat(const char *name, struct stat *facts) {
    disk_path path;
    if (disk_is_below(AT_FDCWD, name, path) && look_fails("lstat", path)) return -1;
    return (int)syscall(SYS_newfstatat, AT_FDCWD, name, facts, AT_SYMLINK_NOFOLLOW);
}

int lstat64(const char *name, struct stat64 *facts) {
    disk_path path;
    if (disk_is_below(AT_FDCWD, name, path) && look_fails("lstat", path)) return -1;
    return (int)syscall(SYS_newfstatat, AT_FDCWD, name, facts, AT_SYMLINK_NOFOLLOW);
}

DIR *opendir(const char *name) {
    disk_path path;
    if (disk_is_below(AT_FDCWD, name, path) && look_fails("opendir", path)) return NULL;
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    return next(name);
}

struct dirent *readdir(DIR *stream) {
    disk_path path;
    if (disk_descriptor_is_below(dirfd(stream), path) && look_fails("readdir", path)) return NULL;
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    return next(stream);
}

struct dirent64 *readdir64(DIR *stream) {
    disk_path path;
    if (disk_descriptor_is_below(dirfd(stream), path) && look_fails("readdir", path)) return NULL;
    struct dirent64 *(*next)(DIR *) = (struct dirent64 * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir64");
    return next(stream);
}
