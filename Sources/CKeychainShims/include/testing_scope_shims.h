/* SPDX-License-Identifier: Apache-2.0 */
/* A flag set at load time in a process that links KeychainTesting, which must never use the user's own keychain. */
#ifndef KEYCHAIN_TESTING_SCOPE_SHIMS_H
#define KEYCHAIN_TESTING_SCOPE_SHIMS_H

#include <stdbool.h>

void keychain_require_testing_scope(void);
bool keychain_testing_scope_is_required(void);

#endif
