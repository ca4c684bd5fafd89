/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the replacements of C library functions. */
#ifndef DISK_RECORDER_H
#define DISK_RECORDER_H

#include "CDiskRecorder.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

enum disk_event {
    DISK_ROOT = 1,
    DISK_MARK,
    DISK_FILE_MADE,
    DISK_DIRECTORY_MADE,
    DISK_WRITTEN,
    DISK_TRUNCATED,
    DISK_FLUSHED,
    DISK_FLUSH_FAILED,
    DISK_LINKED,
    DISK_RENAMED,
    DISK_REMOVED,
    DISK_UNKNOWN_CHANGE,
};

#define DISK_LOOKS DISK_RECORDER_LOOKS
#define DISK_CHANGES DISK_RECORDER_CHANGES
#define DISK_FLUSHES DISK_RECORDER_FLUSHES
#define DISK_CLOSES DISK_RECORDER_CLOSES
#define DISK_TRANSFERS DISK_RECORDER_TRANSFERS

/* The outcome of a call. */
enum disk_fate { DISK_GOES_ON, DISK_FAILS, DISK_IS_CUT_SHORT, DISK_IS_SKIPPED };

typedef char disk_path[PATH_MAX];

/* The order of the log is the order of the changes: both happen between these two. Does nothing while nothing is recorded. */
void disk_lock(void);
void disk_unlock(void);

/* Whether a call concerns a path below the root; sets the path. */
bool disk_is_below(int directory, const char *name, disk_path path);
bool disk_descriptor_is_below(int descriptor, disk_path path);
bool disk_flush_is_ignored(const char *path);

/* Call once for each flush while holding the lock. Sets errno if the flush is to fail. */
bool disk_flush_fails(const char *path);

/* Call after each link was created and recorded. */
void disk_linked(const char *path);

/* Call once for each call while holding the lock. Sets errno if the call is to fail. */
enum disk_fate disk_fate_of(unsigned kind, const char *name, const char *path);

/* Call both while holding the lock. */
void disk_note(enum disk_event event, uint64_t inode, uint64_t position, const char *path, const char *second, const void *data,
               size_t byte_count);
uint64_t disk_inode(int descriptor);

#endif
