/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into every program that runs under Thread Sanitizer. It reports the synchronization inside the toolchain's libraries, which are not
 * built with the sanitizer. The sanitizer sees atomics in compiled code and calls of pthread functions, but not that the kernel wakes a
 * waiting thread inside libswiftSynchronization.
 *
 * Each function here replaces a function of the library, calls it, and reports the synchronization. Scripts/sanitize.sh checks that the
 * names are right: access to data that a Mutex protects must not be reported, and a planted race must be.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

/*
 * The options are built in, because child processes do not inherit the environment; Scripts/sanitize.sh defines the paths. Core dumps stay
 * enabled, because tests check their limits.
 */
const char *__tsan_default_options(void) {
    return "external_symbolizer_path=" SANITIZER_SYMBOLIZER ":log_path=" SANITIZER_REPORTS "/thread"
           ":suppressions=" SANITIZER_SUPPRESSIONS ":disable_coredump=0:exitcode=66:halt_on_error=0:second_deadlock_stack=1";
}

static void *library_function(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "cannot replace %s for Thread Sanitizer: this toolchain has no function with that name\n", name);
        abort();
    }
    return function;
}

/* Synchronization.Mutex: an atomic exchange in compiled code without contention, these functions with contention. */
#define MUTEX __attribute__((swift_context)) void *mutex

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
__attribute__((swiftcall)) void lock_slowly(uint32_t thread, MUTEX) __asm__(LOCK);
__attribute__((swiftcall)) void lock_slowly(uint32_t thread, MUTEX) {
    static __attribute__((swiftcall)) void (*library)(uint32_t, MUTEX);
    if (!library) library = library_function(LOCK);
    library(thread, mutex);
    __tsan_acquire(mutex);
}

#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
__attribute__((swiftcall)) bool try_lock_slowly(MUTEX) __asm__(TRY_LOCK);
__attribute__((swiftcall)) bool try_lock_slowly(MUTEX) {
    static __attribute__((swiftcall)) bool (*library)(MUTEX);
    if (!library) library = library_function(TRY_LOCK);
    bool is_locked = library(mutex);
    if (is_locked) __tsan_acquire(mutex);
    return is_locked;
}

#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
__attribute__((swiftcall)) void unlock_slowly(MUTEX) __asm__(UNLOCK);
__attribute__((swiftcall)) void unlock_slowly(MUTEX) {
    static __attribute__((swiftcall)) void (*library)(MUTEX);
    if (!library) library = library_function(UNLOCK);
    __tsan_release(mutex);
    library(mutex);
}
