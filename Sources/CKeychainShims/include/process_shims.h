/* SPDX-License-Identifier: Apache-2.0 */
/* Process settings of a program that handles secrets: no core dumps, sealed memory files, close-on-exec descriptors. */
#ifndef KEYCHAIN_PROCESS_SHIMS_H
#define KEYCHAIN_PROCESS_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the program was started with privileges that its caller lacks (AT_SECURE: another effective user or group, or file
   capabilities), or its effective user or group differs from the real one. */
bool keychain_process_is_privileged(void);

/* Disables core dumps, and reading and tracing by other processes of the same user. */
bool keychain_process_refuse_dumps(void);

/* Restores the default action of crash signals, including SIGQUIT: a handler that prints registers and memory would print secrets.
   Ignored signals stay ignored. */
void keychain_process_end_on_crash(void);

/* Creates an empty memory file that can be sealed, close-on-exec. Returns -1 and sets errno on failure. */
int keychain_memory_file_create(void);

/* Seals the memory file: it can no longer be written, resized, or unsealed. */
bool keychain_memory_file_seal(int descriptor);

/* Makes every descriptor from `first` on close-on-exec. */
bool keychain_close_on_exec_from(int first);

/* Marks one descriptor close-on-exec, or takes the mark away. */
bool keychain_set_close_on_exec(int descriptor, bool closes);

/* The arguments of the program as the kernel passed them, ended by a null pointer. Unlike Swift's CommandLine, which reads /proc, they are
   complete if /proc is not mounted or cannot be read. */
char *const *keychain_process_arguments(void);
int keychain_process_argument_count(void);

/* Returns the memory that the allocator keeps for later to the system, if the C library can. */
void keychain_memory_return_free(void);

/* Replaces this process with the program arguments[0], searched in PATH. Returns only on failure, with an errno value. */
int keychain_execute(char *const *arguments);

#endif
