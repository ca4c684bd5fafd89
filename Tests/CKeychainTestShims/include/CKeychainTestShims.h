/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the C library and the kernel that only tests call, and faults that they plant. */
#ifndef CKEYCHAINTESTSHIMS_H
#define CKEYCHAINTESTSHIMS_H

#include "planted_faults.h"

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From this call on the kernel answers EPERM to every thread of the process that uses a keyring, as in most containers.
   Returns 0 or an errno value. */
int keychain_test_refuse_keyring(void);

/* Whether the sought bytes occur in others. */
bool keychain_test_contains(const void *bytes, size_t byte_count, const void *sought, size_t sought_byte_count);

/* Sets an element of `found` to true if its value occurs in the bytes, in one pass for all values. `sought` has the values one after
   another, each of at least 16 bytes. */
void keychain_test_find_each(
    const uint8_t *bytes, size_t byte_count, const uint8_t *sought, const size_t *sought_byte_counts, size_t sought_count, bool *found);

/* `posix_spawn_file_actions_addclosefrom_np`, which the C library declares for GNU programs only. */
int keychain_test_spawn_close_from(posix_spawn_file_actions_t *actions, int first_descriptor);

/* Connects to a socket that keeps the boundaries of packets. Returns -1 and sets errno on failure. */
int keychain_test_connect_packets(const char *path);

/* Tries ten calls that keychain-peer forbids itself: tracing, reading and writing the memory of a process, comparing and taking its descriptors,
   a socket, a program, a file to write, memory with code, and a process. Returns a bit for each that is possible. */
unsigned keychain_test_possible_calls(void);

/* Sends a packet with a descriptor. */
bool keychain_test_send_descriptor(int socket, int descriptor, int count, const void *bytes, size_t byte_count);

#endif
