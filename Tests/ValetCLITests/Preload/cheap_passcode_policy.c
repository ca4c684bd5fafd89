/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A library that transcripts preload into `valet` (LD_PRELOAD). It makes /etc/keychain/policy.json appear to be a file of root with the
   cheapest key derivation for passcodes that a policy can choose: 1 MiB in place of 64 MiB. The program under test is unchanged, and has
   no switch that another process could use to weaken a passcode. A person who can preload a library into a process controls it anyway. */

static const char policy_path[] = "/etc/keychain/policy.json";
static const char policy[] = "{\"passcodeMemoryMiB\": 1}";

/* The identity of the memory file that this thread opened last in place of the policy. */
static __thread ino_t policy_inode;
static __thread dev_t policy_device;

static int open_policy(void) {
    int (*next_fstat)(int, struct stat *) = dlsym(RTLD_NEXT, "fstat");
    int file = memfd_create("policy", MFD_CLOEXEC);
    if (file < 0) return -1;
    struct stat information;
    if (write(file, policy, sizeof policy - 1) < 0 || lseek(file, 0, SEEK_SET) < 0 || next_fstat(file, &information) != 0) {
        close(file);
        return -1;
    }
    policy_inode = information.st_ino;
    policy_device = information.st_dev;
    return file;
}

#define REPLACE_OPEN(name)                                                                     \
    int name(const char *path, int flags, ...) {                                               \
        va_list rest;                                                                          \
        va_start(rest, flags);                                                                 \
        mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                                          \
        if (strcmp(path, policy_path) == 0) return open_policy();                              \
        int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                         \
        return next(path, flags, mode);                                                        \
    }
REPLACE_OPEN(open)
REPLACE_OPEN(open64)

/* `valet` accepts a policy only if root owns it and no other user can write it. */
int fstat(int file, struct stat *information) {
    int (*next)(int, struct stat *) = dlsym(RTLD_NEXT, "fstat");
    int result = next(file, information);
    if (result == 0 && policy_inode != 0 && information->st_ino == policy_inode && information->st_dev == policy_device) {
        information->st_uid = 0;
        information->st_mode = S_IFREG | 0644;
    }
    return result;
}
