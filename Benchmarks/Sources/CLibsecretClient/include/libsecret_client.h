/* SPDX-License-Identifier: Apache-2.0 */
/* libsecret's own synchronous calls, opened at run time, so that its development files are not needed. */
#ifndef LIBSECRET_CLIENT_H
#define LIBSECRET_CLIENT_H

#include <stdbool.h>

/* Loads the library. False: it is not installed. */
bool libsecret_client_load(void);

/* Stores `value` under the attribute "key" in the default collection, replacing what was there. False: it failed. */
bool libsecret_client_store(const char *key, const char *value);

/* Looks a value up. False: there is none, or it failed. */
bool libsecret_client_lookup(const char *key);

#endif
