/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the C library's functions that change files and directories: records each change below a root in a log, and makes
   selected calls fail. Link it only into test programs, because it replaces open, write, fsync, and related functions for every
   library of the process. */
#ifndef CDISKRECORDER_H
#define CDISKRECORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Appends every change below `root`, a path without symbolic links, to a file outside of it. Returns 0 or an errno value.
   Recording ends with the process. */
int disk_recorder_start(const char *root, const char *log_path);

/* Records a line of the program between the changes. */
void disk_recorder_mark(const char *text);

/* A planted fault: omits flushes of files whose name has this ending, in the log too; "/" means directories. `ending` must
   outlive the recording. */
void disk_recorder_ignore_flushes(const char *ending);

/* Kinds of calls, a bit mask. */
enum {
    DISK_RECORDER_LOOKS = 1,   /* open to read, read, pread, lstat, opendir, readdir */
    DISK_RECORDER_CHANGES = 2, /* open to write, write, pwrite, ftruncate, link, rename, unlink, mkdir, rmdir */
    DISK_RECORDER_FLUSHES = 4, /* fsync, fdatasync */
    DISK_RECORDER_CLOSES = 8,
    DISK_RECORDER_TRANSFERS = 16, /* read, pread, write, pwrite: calls that can be partial */
};

/* Counts the flushes of files and directories whose path matches `pattern`, by fnmatch(3) without flags, from 1, and makes flush
   `number` fail with EIO. */
void disk_recorder_fail_flush(const char *pattern, uint64_t number);

/* Makes every flush of files and directories whose name has this ending fail with EIO. `ending` must outlive the recording. */
void disk_recorder_fail_flushes(const char *ending);

/* Ends the process, as a kill does, right after link(2) created a name with this ending. */
void disk_recorder_end_at_link(const char *ending);

/* Counts calls of `kinds` below the root, from 1, and makes call `number` fail with `error`; with `lasting`, all later ones too.
   A failing call changes nothing. Error 0: the call transfers half of the bytes. Error -1, the planted fault: the call
   succeeds but its data is lost. Number 0: no call fails. */
void disk_recorder_fail(unsigned kinds, uint64_t number, int error, bool lasting);

/* The number of calls counted since then. */
uint64_t disk_recorder_call_count(void);

/* The name and path of the call that failed; "" if none has failed. Valid until the next `disk_recorder_fail`. */
const char *disk_recorder_failed_call(void);

#endif
