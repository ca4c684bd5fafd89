/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "file_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

volatile const unsigned char *volatile keychain_fork_guard_page;

static pthread_once_t mark_once = PTHREAD_ONCE_INIT;
static volatile unsigned char *writable_mark;

static void clear_mark(void) { *writable_mark = 0; }

static void make_mark(void) {
    size_t byte_count = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    writable_mark = page;
    /* The kernel zeroes the page in every child, however it was created. Kernels before 4.14 cannot, so pthread_atfork is the fallback. */
    if (madvise(page, byte_count, MADV_WIPEONFORK) != 0 && pthread_atfork(NULL, NULL, clear_mark) != 0) {
        (void)munmap(page, byte_count);
        return;
    }
    *writable_mark = 1;
    keychain_fork_guard_page = page;
}

bool keychain_fork_guard_install(void) {
    (void)pthread_once(&mark_once, make_mark);
    return keychain_fork_guard_page != NULL;
}

int keychain_file_system_type(const char *path, uint32_t *type) {
    struct statfs facts;
    while (statfs(path, &facts) != 0) {
        if (errno != EINTR) return errno;
    }
    *type = (uint32_t)facts.f_type;
    return 0;
}

bool keychain_file_is_mount_point(const char *path) {
    struct statx facts;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &facts) != 0) return false;
    return (facts.stx_attributes & facts.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
}

int keychain_directory_open(int parent, const char *name, bool follows_links) {
    int descriptor;
    do {
        descriptor = openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (follows_links ? 0 : O_NOFOLLOW));
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

int keychain_directory_flush(int directory) {
    int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0) return errno;
    int error = fsync(readable) == 0 ? 0 : errno;
    (void)close(readable);
    return error;
}

/* The path is the one that open(2) names for linkat: linking the descriptor itself needs a capability. */
static void descriptor_path(int descriptor, char path[32]) { (void)snprintf(path, 32, "/proc/self/fd/%d", descriptor); }

int keychain_file_open_unnamed(const char *directory) { return keychain_file_open_unnamed_at(AT_FDCWD, directory); }

int keychain_file_open_unnamed_at(int parent, const char *directory) {
    int descriptor = openat(parent, directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0) return -1;
    char path[32];
    descriptor_path(descriptor, path);
    /* The umask may have removed bits that the owner needs. */
    if (access(path, F_OK) == 0 && fchmod(descriptor, 0600) == 0) return descriptor;
    int error = errno;
    (void)close(descriptor);
    errno = error;
    return -1;
}

int keychain_file_link_unnamed(int descriptor, const char *path) { return keychain_file_link_unnamed_at(descriptor, AT_FDCWD, path); }

int keychain_file_link_unnamed_at(int descriptor, int directory, const char *name) {
    char existing[32];
    descriptor_path(descriptor, existing);
    return linkat(AT_FDCWD, existing, directory, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int keychain_file_rename_without_replacing(const char *path, const char *new_path) {
    return keychain_file_rename_without_replacing_at(AT_FDCWD, path, new_path);
}

int keychain_file_rename_without_replacing_at(int directory, const char *name, const char *new_name) {
    return renameat2(directory, name, directory, new_name, RENAME_NOREPLACE) == 0 ? 0 : errno;
}

/* Sets an open file description lock. It also conflicts with connections of this process, closing another descriptor does not drop it, and the kernel
   removes it when the last copy of the descriptor is closed. */
static int set_lock(int descriptor, short type, int64_t first_byte, int64_t byte_count) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first_byte, .l_len = byte_count};
    while (fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

/* The mark is a lock on the first byte. */
int keychain_file_set_mark(int descriptor, bool is_set) {
    return set_lock(descriptor, is_set ? F_RDLCK : F_UNLCK, 0, 1);
}

bool keychain_file_is_marked_by_others(int descriptor) {
    return keychain_file_is_locked_by_others(descriptor, 0, 1);
}

int keychain_file_try_lock(int descriptor, int64_t first_byte, int64_t byte_count) {
    return set_lock(descriptor, F_WRLCK, first_byte, byte_count);
}

int keychain_file_unlock(int descriptor, int64_t first_byte, int64_t byte_count) {
    return set_lock(descriptor, F_UNLCK, first_byte, byte_count);
}

bool keychain_file_is_locked_by_others(int descriptor, int64_t first_byte, int64_t byte_count) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first_byte, .l_len = byte_count};
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
