/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that handles secrets does with its own process: no dumps, sealed memory files, nothing left open across exec. */
#ifndef KEYCHAIN_PROCESS_SHIMS_H
#define KEYCHAIN_PROCESS_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forbids core dumps, and reading or tracing by other programs of the same user. */
bool keychain_process_refuse_dumps(void);

/* Gives the signals of a crash, SIGQUIT among them, back to the system: a handler that prints registers and memory prints secrets.
   What is ignored stays ignored. */
void keychain_process_end_on_crash(void);

/* A new empty memory file that can be sealed; close-on-exec. -1 with errno set. */
int keychain_memory_file_create(void);

/* After this nobody can write, grow, shrink or unseal the memory file. */
bool keychain_memory_file_seal(int descriptor);

/* Marks every descriptor from `first` on close-on-exec. */
bool keychain_close_on_exec_from(int first);

/* Marks one descriptor close-on-exec, or takes the mark away. */
bool keychain_set_close_on_exec(int descriptor, bool closes);

/* Replaces this process by arguments[0], looked up along PATH as a shell does. Returns errno: only on failure. */
int keychain_execute(char *const *arguments);

#endif
