/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads with a shared handle, with handles of their own, and with callbacks. */
#include <pthread.h>

#include "check.h"

enum { thread_count = 8, rounds = 25 };

struct worker {
    valet *shared;
    int number;
};

static bool look(void *context, const char *key, size_t key_length) {
    char *text = NULL;
    valet_status status = valet_get_string(context, key, key_length, &text, NULL);
    /* Another thread may have removed the value. */
    CHECK(status == valet_success || status == valet_error_item_not_found);
    valet_buffer_free(text);
    return true;
}

static void *work(void *given) {
    struct worker *worker = given;
    char own[16], value[32];
    snprintf(own, sizeof own, "own %d", worker->number);
    for (int round = 0; round < rounds; round++) {
        valet *same = new_valet("Threads");
        CHECK(valet_is_equal(same, worker->shared));
        snprintf(value, sizeof value, "%d in round %d", worker->number, round);
        CHECK_STATUS(valet_set_string(worker->shared, NUL(own), NUL(value)), valet_success);
        CHECK(has(same, own, value));
        CHECK_STATUS(valet_set_string(same, NUL("of all"), NUL(value)), valet_success);
        char *text = NULL;
        CHECK_STATUS(valet_get_string(worker->shared, NUL("of all"), &text, NULL), valet_success);
        CHECK(text != NULL && strstr(text, " in round ") != NULL);
        valet_buffer_free(text);
        if (round % 5 == 0) CHECK_STATUS(valet_all_keys(same, look, worker->shared), valet_success);
        if (round % 7 == 0) {
            CHECK_STATUS(valet_remove(same, NUL(own)), valet_success);
            CHECK(!has(same, own, value));
        }
        valet_free(same);
    }
    return NULL;
}

void check_threads(void) {
    valet *shared = new_valet("Threads");
    pthread_t threads[thread_count];
    struct worker workers[thread_count];
    for (int i = 0; i < thread_count; i++) {
        workers[i] = (struct worker){.shared = shared, .number = i};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    CHECK_STATUS(valet_remove_all(shared), valet_success);
    valet_free(shared);
}
