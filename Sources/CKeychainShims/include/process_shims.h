/* SPDX-License-Identifier: Apache-2.0 */
/* Process settings of a program that handles secrets: no core dumps, sealed memory files, close-on-exec descriptors. */
#ifndef KEYCHAIN_PROCESS_SHIMS_H
#define KEYCHAIN_PROCESS_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A descriptor that reports these signals, which are blocked from now on; the mask before goes to `previous`, which the
   caller gives back with keychain_signals_unblock. -1 with errno set. */
typedef struct { unsigned char bytes[128]; } keychain_signal_mask;
int keychain_signals_block(const int *signals, size_t count, keychain_signal_mask *previous);
void keychain_signals_unblock(int descriptor, const keychain_signal_mask *previous);

/* The number of the next signal that was reported; 0 if there is none. */
int keychain_signals_next(int descriptor);

/* Replaces this process with the program arguments[0], searched in PATH. Returns only on failure, with an errno value. */
int keychain_execute(char *const *arguments);

#endif
