/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "process_shims.h"
#include "testing_scope_shims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

void keychain_memory_return_free(void) {
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

bool keychain_process_is_privileged(void) {
    return getauxval(AT_SECURE) != 0 || getuid() != geteuid() || getgid() != getegid();
}

bool keychain_process_refuse_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0; }

void keychain_process_end_on_crash(void) {
    static const int signals[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) {
        struct sigaction action;
        if (sigaction(signals[index], NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = SIG_DFL;
        (void)sigaction(signals[index], &action, NULL);
    }
}

int keychain_memory_file_create(void) {
    /* The name is visible in /proc and discloses nothing. Kernels before 6.3 do not support MFD_NOEXEC_SEAL. */
    int descriptor = memfd_create("secret", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (descriptor < 0 && errno == EINVAL) descriptor = memfd_create("secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor;
}

bool keychain_memory_file_seal(int descriptor) {
    return fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
}

bool keychain_set_close_on_exec(int descriptor, bool closes) {
    return fcntl(descriptor, F_SETFD, closes ? FD_CLOEXEC : 0) == 0;
}

bool keychain_close_on_exec_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
#endif
    /* The fallback for kernels before 5.11. */
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return false;
    bool all = true;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char *end;
        long descriptor = strtol(entry->d_name, &end, 10);
        if (*end || end == entry->d_name || descriptor < first) continue;
        all = keychain_set_close_on_exec((int)descriptor, true) && all;
    }
    (void)closedir(directory);
    return all;
}

static int argument_count;
static char *const *arguments;

static void record_arguments(int count, char **values) {
    argument_count = count;
    arguments = values;
}

/* glibc passes the arguments of `main` to the initializers of a program, and of a library that is loaded later. */
__attribute__((section(".init_array"), used)) static void (*const argument_initializer)(int, char **) = record_arguments;

char *const *keychain_process_arguments(void) { return arguments; }

int keychain_process_argument_count(void) { return argument_count; }

int keychain_execute(char *const *arguments) {
    (void)execvp(arguments[0], arguments);
    return errno;
}

static atomic_bool scope_is_required;

void keychain_require_testing_scope(void) { atomic_store_explicit(&scope_is_required, true, memory_order_relaxed); }

bool keychain_testing_scope_is_required(void) { return atomic_load_explicit(&scope_is_required, memory_order_relaxed); }
