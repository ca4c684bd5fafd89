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

void keychain_vector_registers_clear(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        /* The C library copies with these registers where they exist. They are not in the clobber list because no code compiled for the
           baseline uses them. */
        __asm__ volatile(
            "vpxorq %zmm16, %zmm16, %zmm16\n vpxorq %zmm17, %zmm17, %zmm17\n vpxorq %zmm18, %zmm18, %zmm18\n vpxorq %zmm19, %zmm19, %zmm19\n"
            "vpxorq %zmm20, %zmm20, %zmm20\n vpxorq %zmm21, %zmm21, %zmm21\n vpxorq %zmm22, %zmm22, %zmm22\n vpxorq %zmm23, %zmm23, %zmm23\n"
            "vpxorq %zmm24, %zmm24, %zmm24\n vpxorq %zmm25, %zmm25, %zmm25\n vpxorq %zmm26, %zmm26, %zmm26\n vpxorq %zmm27, %zmm27, %zmm27\n"
            "vpxorq %zmm28, %zmm28, %zmm28\n vpxorq %zmm29, %zmm29, %zmm29\n vpxorq %zmm30, %zmm30, %zmm30\n vpxorq %zmm31, %zmm31, %zmm31\n");
    }
    if (__builtin_cpu_supports("avx")) {
        /* Clears all 16 registers, including the parts that only AVX-512 has. */
        __asm__ volatile("vzeroall" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                               "xmm13", "xmm14", "xmm15");
    } else {
        __asm__ volatile(
            "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n pxor %%xmm3, %%xmm3\n"
            "pxor %%xmm4, %%xmm4\n pxor %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n pxor %%xmm7, %%xmm7\n"
            "pxor %%xmm8, %%xmm8\n pxor %%xmm9, %%xmm9\n pxor %%xmm10, %%xmm10\n pxor %%xmm11, %%xmm11\n"
            "pxor %%xmm12, %%xmm12\n pxor %%xmm13, %%xmm13\n pxor %%xmm14, %%xmm14\n pxor %%xmm15, %%xmm15\n" ::
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                  "xmm14", "xmm15");
    }
#elif defined(__aarch64__)
    __asm__ volatile(
        "movi v0.2d, #0\n movi v1.2d, #0\n movi v2.2d, #0\n movi v3.2d, #0\n movi v4.2d, #0\n movi v5.2d, #0\n movi v6.2d, #0\n"
        "movi v7.2d, #0\n movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n movi v20.2d, #0\n movi v21.2d, #0\n"
        "movi v22.2d, #0\n movi v23.2d, #0\n movi v24.2d, #0\n movi v25.2d, #0\n movi v26.2d, #0\n movi v27.2d, #0\n movi v28.2d, #0\n"
        "movi v29.2d, #0\n movi v30.2d, #0\n movi v31.2d, #0\n" ::
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
              "v27", "v28", "v29", "v30", "v31");
#endif
}
