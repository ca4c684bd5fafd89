/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CKeychainTestShims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static bool is_permitted(long result) { return result >= 0 || errno != EPERM; }

unsigned keychain_test_possible_calls(void) {
    static char source, target;
    struct iovec from = {&source, 1}, to = {&target, 1};
    char *arguments[] = {"nothing", NULL};
    pid_t own = getpid();
    unsigned possible = 0, bit = 1;
    possible |= is_permitted(ptrace(PTRACE_PEEKDATA, own, NULL, NULL)) ? bit : 0;
    possible |= is_permitted(process_vm_readv(own, &to, 1, &from, 1, 0)) ? bit << 1 : 0;
    possible |= is_permitted(process_vm_writev(own, &to, 1, &from, 1, 0)) ? bit << 2 : 0;
    possible |= is_permitted(syscall(SYS_kcmp, own, own, 0, 0, 0)) ? bit << 3 : 0;
    possible |= is_permitted(syscall(SYS_pidfd_getfd, -1, 0, 0)) ? bit << 4 : 0;
    possible |= is_permitted(socket(AF_INET, SOCK_STREAM, 0)) ? bit << 5 : 0;
    possible |= is_permitted(execv("/nonexistent/program", arguments)) ? bit << 6 : 0;
    possible |= is_permitted(open("/dev/null", O_WRONLY | O_CLOEXEC)) ? bit << 7 : 0;
    possible |= mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ? bit << 8 : 0;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) (void)waitpid(child, NULL, 0);
    possible |= is_permitted(child) ? bit << 9 : 0;
    return possible;
}
