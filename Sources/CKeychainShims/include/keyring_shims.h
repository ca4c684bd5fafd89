/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel keyring of this user, for which libc has no functions. Every function returns a negative errno value on failure. */
#ifndef KEYCHAIN_KEYRING_SHIMS_H
#define KEYCHAIN_KEYRING_SHIMS_H

#include <stddef.h>
#include <stdint.h>

/* The largest content of one key, in bytes. */
#define KEYCHAIN_KEYRING_LARGEST_CONTENT 32767

/* Returns 0 if keys can be added to the keyring and searched. Adds nothing. */
int32_t keychain_keyring_probe(void);

/* Returns the serial number of the key with that description. */
int32_t keychain_keyring_search(const char *description);

/* Returns the number of keys in the user's keyring, and copies as many serial numbers as fit to `serials`. */
int32_t keychain_keyring_list(int32_t *serials, size_t capacity);

/* Returns the byte count of "type;user;group;permission;description" with its terminating zero, and copies it to `buffer` if it fits. */
int32_t keychain_keyring_describe(int32_t serial, char *buffer, size_t capacity);

/* Returns the byte count of a key's content, and copies the content to `buffer` if it fits. */
int32_t keychain_keyring_read(int32_t serial, void *buffer, size_t capacity);

/* Adds a key that every process of the user can read, and atomically replaces a key with the same description. Timeout 0: none.
   Returns the serial number. If it fails, the previous key remains. */
int32_t keychain_keyring_add(const char *description, const void *content, size_t byte_count, uint32_t timeout_seconds);

/* Restarts a key's timeout. */
int32_t keychain_keyring_set_timeout(int32_t serial, uint32_t timeout_seconds);

/* Removes a key from every keyring immediately, and frees its content. */
int32_t keychain_keyring_invalidate(int32_t serial);

#endif
