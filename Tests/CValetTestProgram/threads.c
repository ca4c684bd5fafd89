/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads with a shared handle, with handles of their own, and with callbacks. */
#include <pthread.h>
#include <unistd.h>

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

/* Valgrind runs one thread at a time, so a write may wait for the others beyond its deadline of five seconds, and is repeated there. */
static valet_status set_in_time(valet *target, const char *key, const char *value) {
    const char *preload = getenv("LD_PRELOAD");
    int rounds_left = preload && strstr(preload, "vgpreload") ? 20 : 1;
    valet_status status;
    do {
        status = valet_set_string(target, NUL(key), NUL(value));
    } while (status == valet_error_could_not_access_keychain && --rounds_left > 0);
    return status;
}

static void *work(void *given) {
    struct worker *worker = given;
    char own[16], value[32];
    snprintf(own, sizeof own, "own %d", worker->number);
    for (int round = 0; round < rounds; round++) {
        valet *same = new_valet("Threads");
        CHECK(valet_is_equal(same, worker->shared));
        snprintf(value, sizeof value, "%d in round %d", worker->number, round);
        CHECK_STATUS(set_in_time(worker->shared, own, value), valet_success);
        CHECK(has(same, own, value));
        CHECK_STATUS(set_in_time(same, "of all", value), valet_success);
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

/* Calls the library until it is canceled; the other functions of the loop are no cancellation points. */
static void *use_until_canceled(void *shared) {
    for (;;) {
        CHECK_STATUS(valet_set_string(shared, NUL("of all"), NUL("canceled")), valet_success);
        CHECK(valet_can_access(shared));
        valet_free(new_valet("Threads"));
        pthread_testcancel();
    }
}

/* A thread that is canceled inside a call would leave a lock behind, and the next call would wait forever: the signal ends it. */
static void check_cancellation(valet *shared) {
    alarm(120);
    for (int round = 0; round < rounds; round++) {
        pthread_t thread;
        void *result = NULL;
        CHECK(pthread_create(&thread, NULL, use_until_canceled, shared) == 0);
        usleep(round * 200);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK_STATUS(valet_set_string(shared, NUL("of all"), NUL("alive")), valet_success);
    }
    alarm(0);
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
    check_cancellation(shared);
    CHECK_STATUS(valet_remove_all(shared), valet_success);
    valet_free(shared);
}
