/* SPDX-License-Identifier: Apache-2.0 */
/* A lock whose waiters give up at a deadline: KeychainCore has no system library, and Synchronization's Mutex waits for ever. */
#ifndef KEYCHAIN_TIMED_LOCK_SHIMS_H
#define KEYCHAIN_TIMED_LOCK_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct keychain_timed_lock keychain_timed_lock;

/* NULL when there is no memory: such a lock cannot be taken. */
keychain_timed_lock *keychain_timed_lock_create(void);
void keychain_timed_lock_destroy(keychain_timed_lock *lock);

/* Takes the lock; false when it was not to be had until the deadline, in nanoseconds of CLOCK_MONOTONIC. */
bool keychain_timed_lock_acquire(keychain_timed_lock *lock, uint64_t deadline_nanoseconds);
void keychain_timed_lock_release(keychain_timed_lock *lock);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t keychain_monotonic_nanoseconds(void);

#endif
