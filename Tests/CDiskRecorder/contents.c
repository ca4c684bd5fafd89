/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements for the C library's functions on the content of files: each records a change below the root, and then makes the system call.
   They make system calls directly, so no function of the C library is involved. */
#define _GNU_SOURCE
#include "disk_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Defines `large`, the name of the same function with 64-bit offsets. All offsets here have 64 bits. */
#define ALSO_CALLED(large, type, name, ...) type large(__VA_ARGS__) __attribute__((alias(#name)))

static int open_at(int directory, const char *name, int flags, unsigned mode) {
    disk_path path;
    if (!disk_is_below(directory, name, path)) return (int)syscall(SYS_openat, directory, name, flags, mode);
    disk_lock();
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    int descriptor = -1;
    if (disk_fate_of(writes ? DISK_CHANGES : DISK_LOOKS, writes ? "open to write" : "open to read", path) != DISK_FAILS) {
        struct stat facts;
        int error = errno;
        bool was_there = syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0) == 0;
        errno = error;
        descriptor = (int)syscall(SYS_openat, directory, name, flags, mode);
        if (descriptor >= 0 && !was_there) {
            disk_note(DISK_FILE_MADE, disk_inode(descriptor), 0, path, "", "", 0);
        } else if (descriptor >= 0 && (flags & O_TRUNC) != 0) {
            disk_note(DISK_TRUNCATED, disk_inode(descriptor), 0, path, "", "", 0);
        }
    }
    disk_unlock();
    return descriptor;
}

static unsigned mode_of(int flags, va_list arguments) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
}

int open(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, name, flags, mode);
}

int openat(int directory, const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(directory, name, flags, mode);
}

ALSO_CALLED(open64, int, open, const char *, int, ...);
ALSO_CALLED(openat64, int, openat, int, const char *, int, ...);

static size_t half(size_t byte_count) { return byte_count > 1 ? byte_count / 2 : byte_count; }

/* A negative `offset` stands for the descriptor's current position. */
static ssize_t write_at(int descriptor, const void *data, size_t byte_count, off_t offset, const char *name) {
    disk_path path;
    bool is_positioned = offset >= 0;
    if (!disk_descriptor_is_below(descriptor, path)) {
        return is_positioned ? syscall(SYS_pwrite64, descriptor, data, byte_count, offset) : syscall(SYS_write, descriptor, data, byte_count);
    }
    disk_lock();
    ssize_t written = -1;
    enum disk_fate fate = disk_fate_of(DISK_CHANGES | DISK_TRANSFERS, name, path);
    if (fate != DISK_FAILS) {
        if (fate == DISK_IS_CUT_SHORT) byte_count = half(byte_count);
        if (fate == DISK_IS_SKIPPED) {
            written = (ssize_t)byte_count;
            goto done;
        }
        if (!is_positioned) {
            struct stat facts = {0};
            bool appends = (syscall(SYS_fcntl, descriptor, F_GETFL) & O_APPEND) != 0;
            if (appends) (void)syscall(SYS_fstat, descriptor, &facts);
            offset = appends ? facts.st_size : (off_t)syscall(SYS_lseek, descriptor, (off_t)0, SEEK_CUR);
            written = syscall(SYS_write, descriptor, data, byte_count);
        } else {
            written = syscall(SYS_pwrite64, descriptor, data, byte_count, offset);
        }
        if (written > 0) disk_note(DISK_WRITTEN, disk_inode(descriptor), (uint64_t)offset, path, "", data, (size_t)written);
    }
done:
    disk_unlock();
    return written;
}

ssize_t write(int descriptor, const void *data, size_t byte_count) { return write_at(descriptor, data, byte_count, -1, "write"); }

ssize_t pwrite(int descriptor, const void *data, size_t byte_count, off_t offset) {
    if (offset < 0) {
        errno = EINVAL;
        return -1;
    }
    return write_at(descriptor, data, byte_count, offset, "pwrite");
}

ALSO_CALLED(pwrite64, ssize_t, pwrite, int, const void *, size_t, off_t);

/* A negative `offset` stands for the descriptor's current position. */
static ssize_t read_at(int descriptor, void *buffer, size_t byte_count, off_t offset, const char *name) {
    disk_path path;
    if (disk_descriptor_is_below(descriptor, path)) {
        disk_lock();
        enum disk_fate fate = disk_fate_of(DISK_LOOKS | DISK_TRANSFERS, name, path);
        disk_unlock();
        if (fate == DISK_FAILS) return -1;
        if (fate == DISK_IS_CUT_SHORT) byte_count = half(byte_count);
    }
    return offset < 0 ? syscall(SYS_read, descriptor, buffer, byte_count) : syscall(SYS_pread64, descriptor, buffer, byte_count, offset);
}

ssize_t read(int descriptor, void *buffer, size_t byte_count) { return read_at(descriptor, buffer, byte_count, -1, "read"); }

ssize_t pread(int descriptor, void *buffer, size_t byte_count, off_t offset) {
    if (offset < 0) {
        errno = EINVAL;
        return -1;
    }
    return read_at(descriptor, buffer, byte_count, offset, "pread");
}

ALSO_CALLED(pread64, ssize_t, pread, int, void *, size_t, off_t);

int ftruncate(int descriptor, off_t byte_count) {
    disk_path path;
    if (!disk_descriptor_is_below(descriptor, path)) return (int)syscall(SYS_ftruncate, descriptor, byte_count);
    disk_lock();
    int result = -1;
    if (disk_fate_of(DISK_CHANGES, "ftruncate", path) != DISK_FAILS) {
        result = (int)syscall(SYS_ftruncate, descriptor, byte_count);
        if (result == 0) disk_note(DISK_TRUNCATED, disk_inode(descriptor), (uint64_t)byte_count, path, "", "", 0);
    }
    disk_unlock();
    return result;
}

ALSO_CALLED(ftruncate64, int, ftruncate, int, off_t);

static int flush(int descriptor, long number, const char *name) {
    disk_path path;
    if (!disk_descriptor_is_below(descriptor, path)) return (int)syscall(number, descriptor);
    disk_lock();
    int result = 0;
    if (!disk_flush_is_ignored(path)) {
        bool fails = disk_fate_of(DISK_FLUSHES, name, path) == DISK_FAILS || disk_flush_fails(path);
        /* No system call: the log alone determines the content of the simulated disk. */
        disk_note(fails ? DISK_FLUSH_FAILED : DISK_FLUSHED, disk_inode(descriptor), 0, path, "", "", 0);
        result = fails ? -1 : 0;
    }
    disk_unlock();
    return result;
}

int fsync(int descriptor) { return flush(descriptor, SYS_fsync, "fsync"); }

int fdatasync(int descriptor) { return flush(descriptor, SYS_fdatasync, "fdatasync"); }

int close(int descriptor) {
    disk_path path;
    bool fails = false;
    if (disk_descriptor_is_below(descriptor, path)) {
        disk_lock();
        fails = disk_fate_of(DISK_CLOSES, "close", path) == DISK_FAILS;
        disk_unlock();
    }
    int error = errno;
    int result = (int)syscall(SYS_close, descriptor);
    if (!fails) return result;
    /* Linux closes the descriptor even if it returns an error. */
    errno = error;
    return -1;
}

/* Records a call that no tested code is known to use, so that an incomplete log cannot be mistaken for a complete one. */
static void note_unknown(int descriptor, const char *name) {
    disk_path path;
    if (!disk_descriptor_is_below(descriptor, path)) return;
    disk_lock();
    disk_note(DISK_UNKNOWN_CHANGE, 0, 0, name, path, "", 0);
    disk_unlock();
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    note_unknown(descriptor, "writev");
    return syscall(SYS_writev, descriptor, parts, count);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    note_unknown(descriptor, "pwritev");
    return syscall(SYS_pwritev, descriptor, parts, count, offset, 0L);
}

ALSO_CALLED(pwritev64, ssize_t, pwritev, int, const struct iovec *, int, off_t);

int fallocate(int descriptor, int mode, off_t offset, off_t byte_count) {
    note_unknown(descriptor, "fallocate");
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, byte_count);
}

ALSO_CALLED(fallocate64, int, fallocate, int, int, off_t, off_t);

int posix_fallocate(int descriptor, off_t offset, off_t byte_count) {
    note_unknown(descriptor, "posix_fallocate");
    return syscall(SYS_fallocate, descriptor, 0, offset, byte_count) == 0 ? 0 : errno;
}

ALSO_CALLED(posix_fallocate64, int, posix_fallocate, int, off_t, off_t);

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t byte_count, unsigned flags) {
    note_unknown(to, "copy_file_range");
    return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, byte_count, flags);
}
