/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "secret_memory_shims.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#ifndef MADV_DONTDUMP
#define MADV_DONTDUMP 16
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void *keychain_secret_memory_map(size_t byte_count, bool *is_locked) {
    void *base = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    *is_locked = mlock(base, byte_count) == 0;
    /* Best effort: old kernels reject the advice, but the memory is usable. */
    (void)madvise(base, byte_count, MADV_DONTDUMP);
    (void)madvise(base, byte_count, MADV_WIPEONFORK);
    return base;
}

void keychain_secret_memory_unmap(void *base, size_t byte_count) {
    explicit_bzero(base, byte_count);
    (void)munmap(base, byte_count);
}

void keychain_wipe(void *base, size_t byte_count) { explicit_bzero(base, byte_count); }

/* Not inlined: otherwise the caller's frame would grow, and the wipe would not reach as far. */
__attribute__((noinline)) void keychain_stack_wipe(void) {
    unsigned char below[32 * 1024];
    explicit_bzero(below, sizeof(below));
}

__attribute__((noinline)) void keychain_stack_wipe_near(void) {
    unsigned char below[8 * 1024];
    explicit_bzero(below, sizeof(below));
}

bool keychain_random_bytes(void *buffer, size_t byte_count) {
    unsigned char *next = buffer;
    while (byte_count > 0) {
        ssize_t got = getrandom(next, byte_count, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        next += got;
        byte_count -= (size_t)got;
    }
    return true;
}
