/* SPDX-License-Identifier: Apache-2.0 */
/* Faults made on purpose, to see that a sanitizer reports them. For tests alone. */
#ifndef CKEYCHAINTESTSHIMS_PLANTED_FAULTS_H
#define CKEYCHAINTESTSHIMS_PLANTED_FAULTS_H

/* Runs the function on two threads, and returns when both are done. Returns 0, or -1 when they could not be started. */
int keychain_test_on_two_threads(void (*body)(void));

/* Two threads count in one place, with nothing that orders them. */
int keychain_test_plant_race(void);

/* Reads memory that was given back. */
int keychain_test_plant_use_after_free(void);

/* Forgets memory without giving it back. */
void keychain_test_plant_leak(void);

#endif
