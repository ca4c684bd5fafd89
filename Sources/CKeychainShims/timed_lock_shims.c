/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "timed_lock_shims.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define NANOSECONDS_PER_SECOND UINT64_C(1000000000)

void keychain_mutex_init(keychain_mutex *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&mutex->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

struct keychain_timed_lock {
    pthread_mutex_t mutex;
    pthread_cond_t released;
    bool is_taken;
};

keychain_timed_lock *keychain_timed_lock_create(void) {
    keychain_timed_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return NULL;
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    /* With CLOCK_MONOTONIC, setting the wall clock does not change waits. */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&lock->released, &attributes);
    pthread_condattr_destroy(&attributes);
    return lock;
}

void keychain_timed_lock_destroy(keychain_timed_lock *lock) {
    if (!lock) return;
    pthread_cond_destroy(&lock->released);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}

bool keychain_timed_lock_acquire(keychain_timed_lock *lock, uint64_t deadline_nanoseconds) {
    if (!lock) return false;
    struct timespec deadline = {
        .tv_sec = (time_t)(deadline_nanoseconds / NANOSECONDS_PER_SECOND),
        .tv_nsec = (long)(deadline_nanoseconds % NANOSECONDS_PER_SECOND),
    };
    bool is_late = false;
    pthread_mutex_lock(&lock->mutex);
    /* If the lock is free at the deadline it is acquired: the wakeup may have been for this waiter, and would be lost. */
    while (lock->is_taken && !is_late) {
        is_late = pthread_cond_timedwait(&lock->released, &lock->mutex, &deadline) == ETIMEDOUT;
    }
    bool is_ours = !lock->is_taken;
    if (is_ours) lock->is_taken = true;
    pthread_mutex_unlock(&lock->mutex);
    return is_ours;
}

bool keychain_timed_lock_acquire_within(keychain_timed_lock *lock, uint32_t seconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return keychain_timed_lock_acquire(lock, ((uint64_t)now.tv_sec + seconds) * NANOSECONDS_PER_SECOND + (uint64_t)now.tv_nsec);
}

void keychain_timed_lock_release(keychain_timed_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    lock->is_taken = false;
    pthread_cond_signal(&lock->released);
    pthread_mutex_unlock(&lock->mutex);
}
