/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "file_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of the database. */
enum { PENDING = 0x40000000, RESERVED = PENDING + 1, SHARED = PENDING + 2, SHARED_COUNT = 510 };
/* The bytes of the -shm file: those of the index, and the one that a process has locked while it uses the file. */
enum { FIRST_OF_INDEX = 120, IN_USE = FIRST_OF_INDEX + SQLITE_SHM_NLOCK };

/* MARK: Descriptors */

/* Guards the list of all locks of this process. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static keychain_file_locks *first_locks;

static bool is_file(int descriptor, keychain_file_identity identity) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && identity.is_known && (uint64_t)status.st_dev == identity.device
        && (uint64_t)status.st_ino == identity.inode;
}

/* Opens a file without changing it. Returns SQLITE_NOTFOUND if its name leads to another file by now, or to none, and SQLITE_CANTOPEN if it
   cannot be opened, for example without a free descriptor. */
static int open_file(const char *path, keychain_file_identity identity, int *result) {
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return errno == ENOENT || errno == ELOOP ? SQLITE_NOTFOUND : SQLITE_CANTOPEN;
    /* Numbers up to 2 are those of the standard streams, which a program may write to although it has closed them. */
    int usable = descriptor > 2 ? descriptor : fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (usable != descriptor) (void)close(descriptor);
    if (usable < 0) return SQLITE_CANTOPEN;
    if (!is_file(usable, identity)) {
        (void)close(usable);
        return SQLITE_NOTFOUND;
    }
    *result = usable;
    return SQLITE_OK;
}

/* Closes a descriptor unless the program has closed it: the number may belong to a file of the program by now. */
static void close_file(int descriptor, keychain_file_identity identity) {
    if (descriptor >= 0 && is_file(descriptor, identity)) (void)close(descriptor);
}

/* A child of fork(2) has a copy of each descriptor, and would keep the locks although the parent has ended. */
static void close_in_child(void) {
    for (keychain_file_locks *locks = first_locks; locks; locks = locks->next) {
        close_file(locks->database, locks->database_identity);
        close_file(locks->shared_memory, locks->shared_memory_identity);
        locks->database = locks->shared_memory = -1;
    }
    pthread_mutex_unlock(&list_lock);
}

static void lock_list(void) { pthread_mutex_lock(&list_lock); }
static void unlock_list(void) { pthread_mutex_unlock(&list_lock); }
static void register_handlers(void) { (void)pthread_atfork(lock_list, unlock_list, close_in_child); }

/* MARK: One lock */

static struct flock description_of(short type, long long start, long long count) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = count};
}

static int set(int descriptor, short type, long long start, long long count, int failure) {
    struct flock lock = description_of(type, start, count);
    while (fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
        if (errno == EAGAIN || errno == EACCES) return SQLITE_BUSY;
        if (errno != EINTR) return failure;
    }
    return SQLITE_OK;
}

static bool supports_locks(int descriptor) {
    struct flock lock = description_of(F_RDLCK, PENDING, 1);
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 || errno != EINVAL;
}

/* MARK: The database */

int keychain_file_locks_open(keychain_file_locks *locks, const char *path, keychain_file_identity identity) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_handlers);
    int descriptor = -1;
    int code = open_file(path, identity, &descriptor);
    if (code == SQLITE_OK && !supports_locks(descriptor)) {
        (void)close(descriptor);
        descriptor = -1;
    }
    *locks = (keychain_file_locks){
        .database = descriptor, .shared_memory = -1, .database_identity = identity, .level = SQLITE_LOCK_NONE, .is_listed = descriptor >= 0};
    if (!locks->is_listed) return code;
    lock_list();
    locks->next = first_locks;
    first_locks = locks;
    unlock_list();
    return SQLITE_OK;
}

void keychain_file_locks_close(keychain_file_locks *locks) {
    if (!locks->is_listed) return;
    keychain_file_locks_end_sharing(locks);
    (void)keychain_file_locks_lower(locks, SQLITE_LOCK_NONE);
    lock_list();
    keychain_file_locks **link = &first_locks;
    while (*link && *link != locks) link = &(*link)->next;
    if (*link) *link = locks->next;
    unlock_list();
    close_file(locks->database, locks->database_identity);
    locks->database = -1;
    locks->is_listed = false;
}

static int set_on_database(const keychain_file_locks *locks, short type, long long start, long long count) {
    return set(locks->database, type, start, count, type == F_UNLCK ? SQLITE_IOERR_UNLOCK : SQLITE_IOERR_LOCK);
}

static int raise_to_shared(keychain_file_locks *locks) {
    int code = set_on_database(locks, F_RDLCK, PENDING, 1);
    if (code != SQLITE_OK) return code;
    code = set_on_database(locks, F_RDLCK, SHARED, SHARED_COUNT);
    int ended = set_on_database(locks, F_UNLCK, PENDING, 1);
    if (code == SQLITE_OK) locks->level = SQLITE_LOCK_SHARED;
    return code == SQLITE_OK ? ended : code;
}

static int raise_to_exclusive(keychain_file_locks *locks) {
    int code = locks->level < SQLITE_LOCK_PENDING ? set_on_database(locks, F_WRLCK, PENDING, 1) : SQLITE_OK;
    if (code != SQLITE_OK) return code;
    code = set_on_database(locks, F_WRLCK, SHARED, SHARED_COUNT);
    if (code == SQLITE_OK) {
        locks->level = SQLITE_LOCK_EXCLUSIVE;
    } else if (locks->level >= SQLITE_LOCK_RESERVED) {
        /* No new readers, while the present ones end. */
        locks->level = SQLITE_LOCK_PENDING;
    } else {
        (void)set_on_database(locks, F_UNLCK, PENDING, 1);
    }
    return code;
}

int keychain_file_locks_raise(keychain_file_locks *locks, int level) {
    if (locks->level >= level) return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) return raise_to_shared(locks);
    if (level != SQLITE_LOCK_RESERVED) return raise_to_exclusive(locks);
    int code = set_on_database(locks, F_WRLCK, RESERVED, 1);
    if (code == SQLITE_OK) locks->level = level;
    return code;
}

int keychain_file_locks_lower(keychain_file_locks *locks, int level) {
    if (locks->database < 0 || locks->level <= level) return SQLITE_OK;
    bool keeps_shared = level == SQLITE_LOCK_SHARED;
    int code = SQLITE_OK;
    if (keeps_shared && locks->level == SQLITE_LOCK_EXCLUSIVE) code = set_on_database(locks, F_RDLCK, SHARED, SHARED_COUNT);
    if (code == SQLITE_OK) code = set_on_database(locks, F_UNLCK, PENDING, keeps_shared ? 2 : 2 + SHARED_COUNT);
    if (code == SQLITE_OK) locks->level = level;
    return code;
}

int keychain_file_locks_is_reserved(const keychain_file_locks *locks, int *result) {
    struct flock lock = description_of(F_WRLCK, RESERVED, 1);
    *result = locks->level >= SQLITE_LOCK_RESERVED;
    if (*result) return SQLITE_OK;
    if (fcntl(locks->database, F_OFD_GETLK, &lock) != 0) return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *result = lock.l_type != F_UNLCK;
    return SQLITE_OK;
}

/* MARK: The -shm file */

int keychain_file_locks_share(keychain_file_locks *locks, const char *path, keychain_file_identity identity) {
    if (locks->database < 0 || locks->shared_memory >= 0) return SQLITE_OK;
    int descriptor = -1;
    int code = open_file(path, identity, &descriptor);
    /* The file has lost its name, which the connection notices elsewhere. */
    if (code != SQLITE_OK) return code == SQLITE_NOTFOUND ? SQLITE_OK : code;
    code = set(descriptor, F_RDLCK, IN_USE, 1, SQLITE_IOERR_SHMLOCK);
    if (code != SQLITE_OK) {
        (void)close(descriptor);
        return code;
    }
    locks->shared_memory = descriptor;
    locks->shared_memory_identity = identity;
    return SQLITE_OK;
}

void keychain_file_locks_end_sharing(keychain_file_locks *locks) {
    if (locks->shared_memory < 0) return;
    /* Explicitly, because a child process may have a copy of the descriptor. */
    (void)set(locks->shared_memory, F_UNLCK, 0, 0, SQLITE_IOERR_SHMLOCK);
    close_file(locks->shared_memory, locks->shared_memory_identity);
    locks->shared_memory = -1;
}

int keychain_file_locks_lock_shared(const keychain_file_locks *locks, int first, int count, int flags) {
    short type = flags & SQLITE_SHM_UNLOCK ? F_UNLCK : flags & SQLITE_SHM_SHARED ? F_RDLCK : F_WRLCK;
    return set(locks->shared_memory, type, FIRST_OF_INDEX + first, count, SQLITE_IOERR_SHMLOCK);
}
