/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "child_shims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 34)
#define HAS_CLOSE_FROM 1
#endif
#endif

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define FIRST_FREE_DESCRIPTOR 3

static void close_if_open(int *descriptor) {
    if (*descriptor >= 0) (void)close(*descriptor);
    *descriptor = -1;
}

/* Opens a pipe. Neither end gets the number of a standard descriptor, which the caller may have closed. */
static bool open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return false;
    }
    for (int index = 0; index < 2; index++) {
        if (ends[index] >= FIRST_FREE_DESCRIPTOR) continue;
        int moved = fcntl(ends[index], F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
        if (moved < 0) return false;
        (void)close(ends[index]);
        ends[index] = moved;
    }
    return true;
}

static bool never_block(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

static int close_others(posix_spawn_file_actions_t *actions) {
#ifdef HAS_CLOSE_FROM
    return posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FREE_DESCRIPTOR);
#else
    /* Misses descriptors that another thread opens from now on without close-on-exec. Older C libraries offer no better way. */
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return errno;
    int code = 0;
    for (struct dirent *entry; code == 0 && (entry = readdir(directory));) {
        char *end;
        long descriptor = strtol(entry->d_name, &end, 10);
        if (*end || end == entry->d_name || descriptor < FIRST_FREE_DESCRIPTOR) continue;
        int flags = fcntl((int)descriptor, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC)) code = posix_spawn_file_actions_addclose(actions, (int)descriptor);
    }
    (void)closedir(directory);
    return code;
#endif
}

static int spawn(
    const char *path, char *const *arguments, char *const *environment, bool leads_session, int input, int output, pid_t *process
) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    /* The child gets no group of this program's file, which identifies the program, and with which windows are refused. */
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_RESETIDS | (leads_session ? POSIX_SPAWN_SETSID : 0);
    if (!code) code = posix_spawnattr_setsigmask(&attributes, &none);
    if (!code) code = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!code) code = posix_spawnattr_setflags(&attributes, flags);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!code) code = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!code) code = close_others(&actions);
    if (!code) code = posix_spawn(process, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

int keychain_child_start(
    const char *path, char *const *arguments, char *const *environment, bool leads_session, keychain_child *child
) {
    int input[2] = {-1, -1}, output[2] = {-1, -1};
    int code = 0;
    pid_t process = -1;
    if (!open_pipe(input) || !open_pipe(output) || !never_block(input[1]) || !never_block(output[0])) code = errno;
    if (!code) code = spawn(path, arguments, environment, leads_session, input[0], output[1], &process);
    close_if_open(&input[0]);
    close_if_open(&output[1]);
    if (code) {
        close_if_open(&input[1]);
        close_if_open(&output[0]);
        return code;
    }
    child->process = process;
    /* A pidfd is always close-on-exec. */
    child->end = (int)syscall(SYS_pidfd_open, process, 0);
    child->input = input[1];
    child->output = output[0];
    child->leads_session = leads_session;
    child->exit_code = -1;
    return 0;
}

ptrdiff_t keychain_pipe_write(int descriptor, const void *bytes, size_t byte_count) {
    /* SIGPIPE is sent to the writing thread. It is blocked there, and consumed if this write raised it. */
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    (void)sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &broken, &before);
    ssize_t count;
    do count = write(descriptor, bytes, byte_count);
    while (count < 0 && errno == EINTR);
    ptrdiff_t result = count < 0 ? -errno : count;
    if (result == -EPIPE && !was_pending) {
        struct timespec now = {0, 0};
        while (sigtimedwait(&broken, NULL, &now) < 0 && errno == EINTR) {}
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

bool keychain_child_has_ended(keychain_child *child) {
    int status = 0;
    pid_t reaped = waitpid(child->process, &status, WNOHANG);
    /* The only error is ECHILD: the child was reaped, because SIGCHLD is ignored or other code waits for every child. */
    child->exit_code = reaped > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return reaped != 0;
}

void keychain_child_signal(const keychain_child *child, int signal) {
    if (child->end >= 0) {
        /* Unlike kill(2), this never signals another process that has got the same number. */
        if (syscall(SYS_pidfd_send_signal, child->end, signal, NULL, 0) != 0) return;
    } else {
        (void)kill(child->process, signal);
    }
    if (child->leads_session) (void)kill(-child->process, signal);
}

void keychain_child_close_input(keychain_child *child) { close_if_open(&child->input); }

void keychain_child_close(keychain_child *child) {
    close_if_open(&child->input);
    close_if_open(&child->output);
    close_if_open(&child->end);
}
