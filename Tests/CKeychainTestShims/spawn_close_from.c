/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CKeychainTestShims.h"

int keychain_test_spawn_close_from(posix_spawn_file_actions_t *actions, int first_descriptor) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first_descriptor);
}
