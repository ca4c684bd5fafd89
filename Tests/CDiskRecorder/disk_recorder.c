/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disk_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Set once, before the workload begins. */
static disk_path root;
static size_t root_length;
static int log_descriptor = -1;
static volatile bool is_recording;
static const char *ignored_ending, *failing_ending, *last_ending;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by the mutex. */
static unsigned failing_kinds;
static uint64_t failing_number, call_count;
static int failing_error;
static bool failing_lasts;
static char failed_call[PATH_MAX + 64];
static disk_path failing_pattern;
static uint64_t failing_flush_number, matching_flush_count;

void disk_lock(void) {
    if (is_recording) pthread_mutex_lock(&mutex);
}

void disk_unlock(void) {
    int error = errno;
    if (is_recording) pthread_mutex_unlock(&mutex);
    errno = error;
}

static bool has_root(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

bool disk_descriptor_is_below(int descriptor, disk_path path) {
    if (!is_recording) return false;
    int error = errno;
    char link[48];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, (size_t)PATH_MAX - 1);
    errno = error;
    if (length < 0) return false;
    path[length] = 0;
    return has_root(path);
}

bool disk_is_below(int directory, const char *name, disk_path path) {
    if (!is_recording || name == NULL) return false;
    if (name[0] == '/') {
        if (strlen(name) >= PATH_MAX) return false;
        strcpy(path, name);
        return has_root(path);
    }
    disk_path base;
    if (directory == AT_FDCWD) {
        if (syscall(SYS_getcwd, base, sizeof base) < 0) return false;
    } else {
        if (!disk_descriptor_is_below(directory, base)) return false;
    }
    int length = snprintf(path, PATH_MAX, "%s/%s", base, name);
    return length > 0 && length < PATH_MAX && has_root(path);
}

static bool ends_so(const char *path, const char *end) {
    size_t length = strlen(path), ending = strlen(end);
    return length >= ending && strcmp(path + length - ending, end) == 0;
}

bool disk_flush_is_ignored(const char *path) {
    if (ignored_ending == NULL) return false;
    if (strcmp(ignored_ending, "/") == 0) {
        struct stat facts;
        return syscall(SYS_newfstatat, AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
    }
    return ends_so(path, ignored_ending);
}

bool disk_flush_fails(const char *path) {
    bool fails = failing_ending != NULL && ends_so(path, failing_ending);
    if (failing_flush_number > 0 && fnmatch(failing_pattern, path, 0) == 0) {
        matching_flush_count += 1;
        if (matching_flush_count == failing_flush_number) fails = true;
    }
    if (fails) errno = EIO;
    return fails;
}

void disk_linked(const char *path) {
    if (last_ending != NULL && ends_so(path, last_ending)) _exit(0);
}

enum disk_fate disk_fate_of(unsigned kind, const char *name, const char *path) {
    if ((failing_kinds & kind) == 0) return DISK_GOES_ON;
    call_count += 1;
    if (failing_number == 0 || call_count < failing_number || (call_count > failing_number && !failing_lasts)) return DISK_GOES_ON;
    if (call_count == failing_number) snprintf(failed_call, sizeof failed_call, "%s %s", name, path);
    if (failing_error <= 0) return failing_error == 0 ? DISK_IS_CUT_SHORT : DISK_IS_SKIPPED;
    errno = failing_error;
    return DISK_FAILS;
}

uint64_t disk_inode(int descriptor) {
    struct stat facts;
    return syscall(SYS_fstat, descriptor, &facts) == 0 ? (uint64_t)facts.st_ino : 0;
}

/* A log with a gap would prove nothing. */
static void append(const void *data, size_t byte_count) {
    const char *next = data;
    while (byte_count > 0) {
        ssize_t written = syscall(SYS_write, log_descriptor, next, byte_count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            static const char message[] = "the log of the disk's changes cannot be written\n";
            (void)syscall(SYS_write, 2, message, sizeof message - 1);
            _exit(70);
        }
        next += written;
        byte_count -= (size_t)written;
    }
}

void disk_note(enum disk_event event, uint64_t inode, uint64_t position, const char *path, const char *second, const void *data,
               size_t byte_count) {
    int error = errno;
    struct {
        uint32_t event, path_length, second_length, byte_count;
        uint64_t inode, position;
    } head = {event, (uint32_t)strlen(path), (uint32_t)strlen(second), (uint32_t)byte_count, inode, position};
    append(&head, sizeof head);
    append(path, head.path_length);
    append(second, head.second_length);
    append(data, byte_count);
    errno = error;
}

int disk_recorder_start(const char *root_path, const char *log_path) {
    if (strlen(root_path) >= PATH_MAX) return ENAMETOOLONG;
    strcpy(root, root_path);
    root_length = strlen(root);
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_descriptor < 0) return errno;
    struct stat facts;
    if (syscall(SYS_newfstatat, AT_FDCWD, root, &facts, 0) != 0) return errno;
    disk_note(DISK_ROOT, facts.st_ino, 0, root, "", "", 0);
    is_recording = true;
    return 0;
}

void disk_recorder_mark(const char *text) {
    disk_lock();
    if (is_recording) disk_note(DISK_MARK, 0, 0, text, "", "", 0);
    disk_unlock();
}

void disk_recorder_ignore_flushes(const char *ending) { ignored_ending = ending; }

void disk_recorder_fail_flush(const char *pattern, uint64_t number) {
    disk_lock();
    snprintf(failing_pattern, sizeof failing_pattern, "%s", pattern);
    failing_flush_number = number;
    matching_flush_count = 0;
    disk_unlock();
}

void disk_recorder_fail_flushes(const char *ending) { failing_ending = ending; }

void disk_recorder_end_at_link(const char *ending) { last_ending = ending; }

void disk_recorder_fail(unsigned kinds, uint64_t number, int error, bool lasting) {
    disk_lock();
    failing_kinds = kinds;
    failing_number = number;
    failing_error = error;
    failing_lasts = lasting;
    call_count = 0;
    failed_call[0] = 0;
    disk_unlock();
}

uint64_t disk_recorder_call_count(void) {
    disk_lock();
    uint64_t count = call_count;
    disk_unlock();
    return count;
}

const char *disk_recorder_failed_call(void) { return failed_call; }
