/* SPDX-License-Identifier: Apache-2.0 */
#include "CKeychainTestingMarker.h"

#include "testing_scope_shims.h"

__attribute__((constructor)) static void keychain_testing_is_linked(void) { keychain_require_testing_scope(); }

void keychain_testing_marker_keep(void) {}
