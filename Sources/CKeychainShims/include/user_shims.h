/* SPDX-License-Identifier: Apache-2.0 */
/* The databases of users and groups. */
#ifndef KEYCHAIN_USER_SHIMS_H
#define KEYCHAIN_USER_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The home directory of the effective user in the password database, to be freed by the caller; NULL if there is none or no memory. */
char *keychain_copy_home_of_effective_user(void);

/* Looks a group up in the group database. Returns 1, 0 if there is none, or -1 with errno. `name` receives at most `capacity` bytes with a
   NUL; a longer name fails with ENAMETOOLONG. */
int keychain_group_find(uint32_t group, char *name, size_t capacity, bool *has_members);

/* The primary group of a user in the password database. Returns 1, 0 if there is no such user, or -1 with errno. */
int keychain_user_find_primary_group(uint32_t user, uint32_t *group);

/* The number of a user in the password database. Returns 1, 0 if there is no such user, or -1 with errno. */
int keychain_user_find_number(const char *name, uint32_t *user);

/* The name of a user in the password database. Returns 1, 0 if there is no such user, or -1 with errno. `name` receives at most `capacity`
   bytes with a NUL; a longer name fails with ENAMETOOLONG. */
int keychain_user_find_name(uint32_t user, char *name, size_t capacity);

#endif
