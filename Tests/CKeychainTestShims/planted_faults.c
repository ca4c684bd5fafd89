/* SPDX-License-Identifier: Apache-2.0 */
#include "planted_faults.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *run(void *body) {
    ((void (*)(void))body)();
    return NULL;
}

int keychain_test_on_two_threads(void (*body)(void)) {
    pthread_t threads[2];
    int started = 0;
    while (started < 2 && pthread_create(&threads[started], NULL, run, (void *)body) == 0) started++;
    for (int index = 0; index < started; index++) pthread_join(threads[index], NULL);
    return started == 2 ? 0 : -1;
}

static int planted_count;

static void count_in_c(void) {
    for (int round = 0; round < 1000; round++) planted_count++;
}

int keychain_test_plant_race(void) {
    return keychain_test_on_two_threads(count_in_c);
}

int keychain_test_plant_use_after_free(void) {
    /* Volatile, so that the optimizer keeps the access. */
    char *volatile bytes = malloc(16);
    if (!bytes) return -1;
    bytes[0] = 1;
    free(bytes);
    return bytes[0];
}

/* Not inlined, so that the caller's frame does not keep the pointer. */
__attribute__((noinline)) static void leak(size_t count) {
    void *volatile bytes = malloc(count);
    if (bytes) memset(bytes, 1, count);
    bytes = NULL;
}

void keychain_test_plant_leak(void) {
    for (size_t count = 100; count < 110; count++) leak(count);
}
