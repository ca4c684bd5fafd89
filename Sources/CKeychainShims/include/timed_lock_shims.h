/* SPDX-License-Identifier: Apache-2.0 */
/* A lock with a deadline. Mutex in Synchronization has none, and KeychainCore must not use a system library. */
#ifndef KEYCHAIN_TIMED_LOCK_SHIMS_H
#define KEYCHAIN_TIMED_LOCK_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

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
