/* SPDX-License-Identifier: Apache-2.0 */
/* A process that links KeychainTesting must never reach the user's own keychain: this flag says so from load time on. */
#ifndef KEYCHAIN_TESTING_SCOPE_SHIMS_H
#define KEYCHAIN_TESTING_SCOPE_SHIMS_H

#include <stdbool.h>

void keychain_require_testing_scope(void);
bool keychain_testing_scope_is_required(void);

#endif
