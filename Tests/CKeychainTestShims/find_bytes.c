/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CKeychainTestShims.h"

#include <string.h>

bool keychain_test_contains(const void *bytes, size_t byte_count, const void *sought, size_t sought_byte_count) {
    return memmem(bytes, byte_count, sought, sought_byte_count) != NULL;
}
