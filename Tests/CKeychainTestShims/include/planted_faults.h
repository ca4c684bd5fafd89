/* SPDX-License-Identifier: Apache-2.0 */
/* Deliberate faults, which prove that a sanitizer reports them. */
#ifndef CKEYCHAINTESTSHIMS_PLANTED_FAULTS_H
#define CKEYCHAINTESTSHIMS_PLANTED_FAULTS_H

/* Runs the function on two threads, and returns when both have returned. Returns 0, or -1 if a thread could not be started. */
int keychain_test_on_two_threads(void (*body)(void));

/* Two threads increment one variable without synchronization. */
int keychain_test_plant_race(void);

/* Reads memory after free(). */
int keychain_test_plant_use_after_free(void);

/* Allocates memory and never frees it. */
void keychain_test_plant_leak(void);

#endif
