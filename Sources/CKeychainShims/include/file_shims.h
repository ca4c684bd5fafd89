/* SPDX-License-Identifier: Apache-2.0 */
/* Fork detection, file system types, and locks on database files. */
#ifndef KEYCHAIN_FILE_SHIMS_H
#define KEYCHAIN_FILE_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points to a byte that is 0 in a process forked from one that called keychain_fork_guard_install(); NULL before that call. */
extern volatile const unsigned char *volatile keychain_fork_guard_page;

/* Enables fork detection in this process. Idempotent. Returns false if there is no memory. */
bool keychain_fork_guard_install(void);

/* Whether this process was forked, without exec, from one that called keychain_fork_guard_install(). Costs two loads. */
static inline bool keychain_process_is_forked(void) {
    volatile const unsigned char *mark = keychain_fork_guard_page;
    return mark != NULL && *mark == 0;
}

/* Enables fork detection in this process. Returns false if it was forked, without exec, from one that enabled it, and if there is no memory.
   Costs two loads once enabled. */
static inline bool keychain_fork_guard_passes(void) {
    volatile const unsigned char *mark = keychain_fork_guard_page;
    return (mark != NULL || keychain_fork_guard_install()) && !keychain_process_is_forked();
}

/* Gets the type of the file system that contains `path`, as in statfs(2). Returns 0 or an errno value. */
int keychain_file_system_type(const char *path, uint32_t *type);

/* Whether something is mounted on the name itself, as with a bind mount of one file. Does not follow a symbolic link. False if that cannot be
   found out: before Linux 5.8, and without statx(2). */
bool keychain_file_is_mount_point(const char *path);

/* Opens a directory as a place for names (O_PATH), close-on-exec. `name` is relative to `parent`, which may be AT_FDCWD. Returns -1 and
   sets errno on failure. */
int keychain_directory_open(int parent, const char *name, bool follows_links);

/* Flushes a directory that keychain_directory_open() opened. Returns 0 or an errno value. */
int keychain_directory_flush(int directory);

/* Opens a new file without a name (O_TMPFILE), mode 0600, close-on-exec, which the kernel removes with the process. Returns -1 and sets errno on
   failure, also if the file could not get a name later: that needs /proc. */
int keychain_file_open_unnamed(const char *directory);

/* The same for a directory whose path is relative to the directory `parent`. */
int keychain_file_open_unnamed_at(int parent, const char *directory);

/* Gives a file that keychain_file_open_unnamed() opened a name; fails with EEXIST if it is taken. Returns 0 or an errno value. */
int keychain_file_link_unnamed(int descriptor, const char *path);

/* The same for a name in a directory. */
int keychain_file_link_unnamed_at(int descriptor, int directory, const char *name);

/* Renames a file; fails with EEXIST if the new name is taken. Returns 0 or an errno value: EINVAL or ENOSYS if the system cannot do that. */
int keychain_file_rename_without_replacing(const char *path, const char *new_path);

/* The same for two names in one directory. */
int keychain_file_rename_without_replacing_at(int directory, const char *name, const char *new_name);

/* Locks bytes of a file that is open for writing, until the descriptor is closed. Does not wait. Returns 0 or an errno value: EAGAIN if another
   process or description has locked one of them. */
int keychain_file_try_lock(int descriptor, int64_t first_byte, int64_t byte_count);

/* Unlocks these bytes for all copies of the descriptor. Returns 0 or an errno value. */
int keychain_file_unlock(int descriptor, int64_t first_byte, int64_t byte_count);

/* Whether another process or description has locked one of these bytes. False if that cannot be found out. */
bool keychain_file_is_locked_by_others(int descriptor, int64_t first_byte, int64_t byte_count);

/* Sets or clears a mark of the descriptor on the file: a lock that many may have at once. Returns 0 or an errno value. */
int keychain_file_set_mark(int descriptor, bool is_set);

/* Whether another descriptor, of any process, has set its mark on the file. False if that cannot be found out. */
bool keychain_file_is_marked_by_others(int descriptor);

#endif
