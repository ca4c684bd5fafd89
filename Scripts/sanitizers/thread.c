/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into every program that runs under Thread Sanitizer: shows it what the toolchain's own libraries, which are not built with it, do in
 * order to make one thread wait for another. It sees atomics that the compiler puts into our code and calls of pthread's functions,
 * but a waiter that the kernel wakes inside libswiftSynchronization looks to it like a thread that never waited.
 *
 * Each function here takes the place of the library's, calls it, and says what it orders. That the library has it under this name is
 * checked by what Scripts/sanitize.sh plants: what a Mutex guards is not reported, and what nothing guards is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

/* Children see nothing of our environment, so what they must know is built in. Tests look at limits for core files. The script puts both paths in. */
const char *__tsan_default_options(void) {
    return "external_symbolizer_path=" SANITIZER_SYMBOLIZER ":log_path=" SANITIZER_REPORTS "/thread"
           ":suppressions=" SANITIZER_SUPPRESSIONS ":disable_coredump=0:exitcode=66:halt_on_error=0:second_deadlock_stack=1";
}

static void *library_function(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "Thread Sanitizer cannot be shown %s: this toolchain has no function of that name\n", name);
        abort();
    }
    return function;
}

/* Synchronization.Mutex: taken and given back by an atomic exchange in our code when nobody else wants it, and here otherwise. */
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
__attribute__((swiftcall)) bool try_to_lock_slowly(MUTEX) __asm__(TRY_LOCK);
__attribute__((swiftcall)) bool try_to_lock_slowly(MUTEX) {
    static __attribute__((swiftcall)) bool (*library)(MUTEX);
    if (!library) library = library_function(TRY_LOCK);
    bool is_taken = library(mutex);
    if (is_taken) __tsan_acquire(mutex);
    return is_taken;
}

#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
__attribute__((swiftcall)) void unlock_slowly(MUTEX) __asm__(UNLOCK);
__attribute__((swiftcall)) void unlock_slowly(MUTEX) {
    static __attribute__((swiftcall)) void (*library)(MUTEX);
    if (!library) library = library_function(UNLOCK);
    __tsan_release(mutex);
    library(mutex);
}
