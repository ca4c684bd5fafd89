/* SPDX-License-Identifier: Apache-2.0 */
/* After a program has used the keychain, its forked child is refused, and the program itself continues. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static atomic_bool is_over;

static void *use_until_over(void *handle) {
    while (!atomic_load(&is_over)) {
        valet *same = new_valet("Forks");
        CHECK(valet_is_equal(same, handle));
        CHECK_STATUS(valet_set_string(same, NUL("of a thread"), NUL("value")), valet_success);
        valet_free(same);
    }
    return NULL;
}

/* Forks while other threads hold the locks of the library now and then. */
static void check_forks_beside_threads(valet *handle) {
    enum { thread_count = 3, fork_count = 20 };
    pthread_t threads[thread_count];
    for (int index = 0; index < thread_count; index++) CHECK(pthread_create(&threads[index], NULL, use_until_over, handle) == 0);
    for (int round = 0; round < fork_count; round++) {
        int answer[2];
        CHECK(pipe(answer) == 0);
        pid_t child = fork();
        if (child == 0) {
            /* The signal ends a child that waits for a lock. */
            alarm(30);
            valet *other = NULL;
            valet_status created = valet_create(NUL("Other"), valet_accessibility_when_unlocked, &other);
            valet_status stored = valet_set_string(handle, NUL("key"), NUL("54321"));
            bool can_access = valet_can_access(handle);
            char is_refused = created == valet_error_could_not_access_keychain && stored == created && !can_access;
            if (write(answer[1], &is_refused, 1) != 1) abort();
            /* At an exit, Valgrind would count the memory of the parent's other threads as leaks. */
            raise(SIGKILL);
        }
        close(answer[1]);
        char is_refused = false;
        CHECK(read(answer[0], &is_refused, 1) == 1 && is_refused);
        close(answer[0]);
        CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    }
    atomic_store(&is_over, true);
    for (int index = 0; index < thread_count; index++) CHECK(pthread_join(threads[index], NULL) == 0);
}

void check_forks(void) {
    valet *handle = new_valet("Forks");
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL("12345")), valet_success);
    pid_t child = fork();
    if (child == 0) {
        uint8_t *bytes = NULL;
        size_t length = 0;
        _exit(valet_get(handle, NUL("key"), &bytes, &length));
    }
    int ending = 0;
    CHECK(child > 0 && waitpid(child, &ending, 0) == child);
    CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == valet_error_could_not_access_keychain);
    CHECK(has(handle, "key", "12345"));
    check_forks_beside_threads(handle);
    CHECK(has(handle, "key", "12345"));
    CHECK_STATUS(valet_remove_all(handle), valet_success);
    valet_free(handle);
}
