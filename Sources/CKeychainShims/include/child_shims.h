/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is talked to over its standard input and output, started without fork in the caller's name. */
#ifndef KEYCHAIN_CHILD_SHIMS_H
#define KEYCHAIN_CHILD_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t process;
    /* Becomes readable when the program ends; -1 where the kernel has no such thing (before 5.3). */
    int end;
    /* Its standard input and output; neither blocks. */
    int input, output;
    bool leads_session;
} keychain_child;

/* Starts the program at `path`. It has its own ends of the two pipes, /dev/null for standard error and no other descriptor; no signal is
   blocked or ignored; with `leads_session` it has no controlling terminal. Returns 0 or an errno value. */
int keychain_child_start(
    const char *path, char *const *arguments, char *const *environment, bool leads_session, keychain_child *child
);

/* write(2) to a pipe that raises no SIGPIPE. Returns what was written or a negative errno value. */
ptrdiff_t keychain_pipe_write(int descriptor, const void *bytes, size_t byte_count);

/* Whether the program has ended; then nothing is left of it, also where the process ignores SIGCHLD. To be called until it says true. */
bool keychain_child_has_ended(const keychain_child *child);

/* Sends a signal to the program, and to all of its session if it leads one. To be called only while it has not ended. */
void keychain_child_signal(const keychain_child *child, int signal);

/* Closes the program's standard input. */
void keychain_child_close_input(keychain_child *child);

/* Closes all that is open; to be called last. */
void keychain_child_close(keychain_child *child);

#endif
