/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for keys: locked, excluded from core dumps, zeroed in forked children, and wiped. */
#ifndef KEYCHAIN_SECRET_MEMORY_SHIMS_H
#define KEYCHAIN_SECRET_MEMORY_SHIMS_H

#include <stdbool.h>
#include <stddef.h>

/* Maps `byte_count` zeroed bytes. Returns NULL on failure. Sets `*is_locked` to whether mlock succeeded. */
void *keychain_secret_memory_map(size_t byte_count, bool *is_locked);

/* Wipes and unmaps memory that keychain_secret_memory_map returned. */
void keychain_secret_memory_unmap(void *base, size_t byte_count);

/* Wipes memory. The optimizer does not remove the call. */
void keychain_wipe(void *base, size_t byte_count);

/* Wipes the 32 KiB of this thread's stack below the caller, which may contain data of functions that have returned. */
void keychain_stack_wipe(void);

/* Wipes 8 KiB: enough for one cipher call, and cheap enough for each one. */
void keychain_stack_wipe_near(void);

/* Clears the vector registers, in which memcpy leaves part of what it has copied. A new thread inherits them from the thread that creates it. */
void keychain_vector_registers_clear(void);

/* Fills the buffer from the kernel's random generator, waiting until it is seeded. Returns false if getrandom is not available. */
bool keychain_random_bytes(void *buffer, size_t byte_count);

#endif
