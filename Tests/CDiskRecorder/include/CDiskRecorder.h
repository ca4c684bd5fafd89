/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a program and the C library wherever a file or a directory below one root is changed: notes each change in a
   log, and lets chosen calls fail. Only a program made for this may link it, because it takes the place of open, write, fsync
   and their like for every library of the process. */
#ifndef CDISKRECORDER_H
#define CDISKRECORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Notes every change below `root`, a path without symbolic links, at the end of a file that is not below it. Returns 0 or an
   errno value. The log ends with the process. */
int disk_recorder_start(const char *root, const char *log_path);

/* Puts a line of the program's own between the changes. */
void disk_recorder_mark(const char *text);

/* For proving what the log is read for: flushes of files whose name ends so are neither done nor noted; "/" means those of
   directories. `ending` must outlive the recording. */
void disk_recorder_ignore_flushes(const char *ending);

/* Kinds of calls, to be added up. */
enum {
    DISK_RECORDER_LOOKS = 1,   /* open to read, read, pread, lstat, opendir, readdir */
    DISK_RECORDER_CHANGES = 2, /* open to write, write, pwrite, ftruncate, link, rename, unlink, mkdir, rmdir */
    DISK_RECORDER_FLUSHES = 4, /* fsync, fdatasync */
    DISK_RECORDER_CLOSES = 8,
    DISK_RECORDER_TRANSFERS = 16, /* read, pread, write, pwrite: what can be cut short */
};

/* From this call on, counts the flushes of files and directories whose path matches `pattern`, as fnmatch(3) has it without flags,
   from one, and lets the one of that number fail with EIO. */
void disk_recorder_fail_flush(const char *pattern, uint64_t number);

/* Flushes of files and directories whose name ends so fail with EIO, every one; `ending` must outlive the recording. */
void disk_recorder_fail_flushes(const char *ending);

/* Ends the process, as a kill does, as soon as a name that ends so was given to a file by link(2). */
void disk_recorder_end_at_link(const char *ending);

/* Counts calls of these kinds below the root from one, and lets the one of that number fail with `error`; with `lasting` all
   after it as well. Error 0: it moves half of the bytes. Error -1, for proving what this is used for: what it was to write is
   lost, and nobody is told. Number 0: none fails. What fails changes nothing. */
void disk_recorder_fail(unsigned kinds, uint64_t number, int error, bool lasting);

/* How many calls were counted since. */
uint64_t disk_recorder_call_count(void);

/* What the call that failed was: its name and its path; "" while none has. Valid until the next `disk_recorder_fail`. */
const char *disk_recorder_failed_call(void);

#endif
