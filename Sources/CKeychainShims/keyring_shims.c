/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "keyring_shims.h"

#ifdef __linux__
#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The user may view, read, search, link, and set attributes, from any session. The content cannot be changed. */
static const unsigned long readable_by_user = 0x3f3b0000;

static int32_t answer(long result) { return result < 0 ? -errno : (int32_t)result; }

static int32_t add_to_thread_keyring(const char *description, const void *content, size_t byte_count) {
    return answer(syscall(SYS_add_key, "user", description, content, byte_count, KEY_SPEC_THREAD_KEYRING));
}

int32_t keychain_keyring_probe(void) {
    /* Without a type the kernel returns EFAULT before any other check. Any other result comes from a filter such as seccomp. */
    if (syscall(SYS_add_key, NULL, NULL, NULL, (size_t)0, KEY_SPEC_THREAD_KEYRING) >= 0 || errno != EFAULT) return -errno;
    int32_t serial = answer(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
    return serial < 0 ? serial : 0;
}

int32_t keychain_keyring_search(const char *description) {
    return answer(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", description, 0));
}

int32_t keychain_keyring_read(int32_t serial, void *buffer, size_t capacity) {
    return answer(syscall(SYS_keyctl, KEYCTL_READ, serial, buffer, capacity));
}

int32_t keychain_keyring_list(int32_t *serials, size_t capacity) {
    int32_t byte_count =
        answer(syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_USER_KEYRING, serials, capacity * sizeof *serials));
    return byte_count < 0 ? byte_count : byte_count / (int32_t)sizeof *serials;
}

int32_t keychain_keyring_describe(int32_t serial, char *buffer, size_t capacity) {
    return answer(syscall(SYS_keyctl, KEYCTL_DESCRIBE, serial, buffer, capacity));
}

int32_t keychain_keyring_set_timeout(int32_t serial, uint32_t timeout_seconds) {
    return answer(syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, serial, timeout_seconds));
}

int32_t keychain_keyring_invalidate(int32_t serial) { return answer(syscall(SYS_keyctl, KEYCTL_INVALIDATE, serial)); }

int32_t keychain_keyring_add(const char *description, const void *content, size_t byte_count, uint32_t timeout_seconds) {
    /* A thread possesses the keys in its own keyring, and so may set their permissions in any session. All calls must be made by one
       thread, so they are in one function. */
    int32_t previous = keychain_keyring_search(description);
    int32_t serial = add_to_thread_keyring(description, content, byte_count);
    if (serial < 0) return serial;
    int32_t result = answer(syscall(SYS_keyctl, KEYCTL_SETPERM, serial, readable_by_user));
    if (result >= 0 && timeout_seconds > 0) result = keychain_keyring_set_timeout(serial, timeout_seconds);
    /* The link atomically replaces a key with the same description, so a search always finds one. */
    if (result >= 0) result = answer(syscall(SYS_keyctl, KEYCTL_LINK, serial, KEY_SPEC_USER_KEYRING));
    if (result < 0) {
        (void)keychain_keyring_invalidate(serial);
        return result;
    }
    (void)syscall(SYS_keyctl, KEYCTL_UNLINK, serial, KEY_SPEC_THREAD_KEYRING);
    /* The previous key may be linked to another keyring too. */
    if (previous > 0 && previous != serial) (void)keychain_keyring_invalidate(previous);
    return serial;
}
#endif
