/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for keys: locked, left out of core dumps, absent in forked children, wiped. */
#ifndef KEYCHAIN_SECRET_MEMORY_SHIMS_H
#define KEYCHAIN_SECRET_MEMORY_SHIMS_H

#include <stdbool.h>
#include <stddef.h>

/* Maps `byte_count` zeroed bytes. NULL when the kernel refuses. `*is_locked` tells whether mlock succeeded. */
void *keychain_secret_memory_map(size_t byte_count, bool *is_locked);

/* Wipes and unmaps what keychain_secret_memory_map returned. */
void keychain_secret_memory_unmap(void *base, size_t byte_count);

/* A wipe that the optimiser may not remove. */
void keychain_wipe(void *base, size_t byte_count);

/* Wipes the 32 KiB of this thread's stack below the caller: what functions that have returned left there. */
void keychain_stack_wipe(void);

/* The same for 8 KiB: enough for one cipher call, and cheap enough for every one. */
void keychain_stack_wipe_near(void);

/* Fills the buffer from the kernel's generator, waiting until it is seeded. False: the kernel has none (ENOSYS). */
bool keychain_random_bytes(void *buffer, size_t byte_count);

#endif
