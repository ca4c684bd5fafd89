/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's keyring of this user, for which libc has no functions. Every function answers a negative errno value on failure. */
#ifndef KEYCHAIN_KEYRING_SHIMS_H
#define KEYCHAIN_KEYRING_SHIMS_H

#include <stddef.h>
#include <stdint.h>

/* What the kernel can hold in one key. */
#define KEYCHAIN_KEYRING_LARGEST_CONTENT 32767

/* 0 when keys can be added to the keyring and looked for; else why not. Adds nothing. */
int32_t keychain_keyring_probe(void);

/* The serial number of the key with that description. */
int32_t keychain_keyring_search(const char *description);

/* How many keys are in the user's keyring; as many of their serial numbers as fit go to `serials`. */
int32_t keychain_keyring_list(int32_t *serials, size_t capacity);

/* The byte count of "type;user;group;permission;description" and the zero that ends it; it goes to `buffer` when that is large enough. */
int32_t keychain_keyring_describe(int32_t serial, char *buffer, size_t capacity);

/* The byte count of a key's content; the content goes to `buffer` when that is large enough. */
int32_t keychain_keyring_read(int32_t serial, void *buffer, size_t capacity);

/* Holds `content` under a description, readable by every process of the user, in the place of what was there; 0: no timeout.
   Answers the serial number. Before it succeeds what was there stays. */
int32_t keychain_keyring_add(const char *description, const void *content, size_t byte_count, uint32_t timeout_seconds);

/* Lets a key's time begin anew. */
int32_t keychain_keyring_set_timeout(int32_t serial, uint32_t timeout_seconds);

/* Takes a key out of every keyring and frees its content, at once. */
int32_t keychain_keyring_invalidate(int32_t serial);

#endif
