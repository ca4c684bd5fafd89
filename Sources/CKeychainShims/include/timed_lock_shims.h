/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: a mutex, and a lock with a deadline. KeychainCore must not use a system library. */
#ifndef KEYCHAIN_TIMED_LOCK_SHIMS_H
#define KEYCHAIN_TIMED_LOCK_SHIMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A mutex that any running thread may take, and for which a thread on another core spins briefly. */
typedef struct {
    pthread_mutex_t mutex;
} keychain_mutex;

void keychain_mutex_init(keychain_mutex *mutex);
static inline void keychain_mutex_destroy(keychain_mutex *mutex) { pthread_mutex_destroy(&mutex->mutex); }
static inline void keychain_mutex_lock(keychain_mutex *mutex) { pthread_mutex_lock(&mutex->mutex); }
static inline void keychain_mutex_unlock(keychain_mutex *mutex) { pthread_mutex_unlock(&mutex->mutex); }

/* Mutex in Synchronization has no deadline. */
typedef struct keychain_timed_lock keychain_timed_lock;

/* Returns NULL if there is no memory. A NULL lock cannot be acquired. */
keychain_timed_lock *keychain_timed_lock_create(void);
void keychain_timed_lock_destroy(keychain_timed_lock *lock);

/* Acquires the lock. Returns false at the deadline, given in nanoseconds of CLOCK_MONOTONIC. */
bool keychain_timed_lock_acquire(keychain_timed_lock *lock, uint64_t deadline_nanoseconds);
/* Acquires the lock. Returns false after so many seconds. */
bool keychain_timed_lock_acquire_within(keychain_timed_lock *lock, uint32_t seconds);
void keychain_timed_lock_release(keychain_timed_lock *lock);

#endif
