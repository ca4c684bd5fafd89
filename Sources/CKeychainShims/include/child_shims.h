/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that communicates over its standard input and output, started with posix_spawn. */
#ifndef KEYCHAIN_CHILD_SHIMS_H
#define KEYCHAIN_CHILD_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t process;
    /* A pidfd, which becomes readable when the process ends; -1 for kernels before 5.3. */
    int end;
    /* Our ends of its standard input and output, both nonblocking. */
    int input, output;
    bool leads_session;
    /* -1 until the process has exited, and if a signal has ended it. */
    int exit_code;
} keychain_child;

/* Starts the program at `path`. It inherits its ends of the two pipes, /dev/null as standard error, and no other descriptor. No signal is
   blocked or ignored in it. With `leads_session` it has no controlling terminal. Returns 0 or an errno value. */
int keychain_child_start(
    const char *path, char *const *arguments, char *const *environment, bool leads_session, keychain_child *child
);

/* Writes to a pipe without raising SIGPIPE. Returns the number of bytes written or a negative errno value. */
ptrdiff_t keychain_pipe_write(int descriptor, const void *bytes, size_t byte_count);

/* Returns whether the process has ended, and reaps it. Must be called until it returns true. */
bool keychain_child_has_ended(keychain_child *child);

/* Sends a signal to the process, and to its process group if it leads a session. The process must not have been reaped. */
void keychain_child_signal(const keychain_child *child, int signal);

/* Closes the process's standard input. */
void keychain_child_close_input(keychain_child *child);

/* Closes all descriptors. Must be the last call. */
void keychain_child_close(keychain_child *child);

#endif
