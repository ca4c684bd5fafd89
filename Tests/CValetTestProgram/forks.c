/* SPDX-License-Identifier: Apache-2.0 */
/* After a program has used the keychain, its forked child is refused, and the program itself continues. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

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
    CHECK_STATUS(valet_remove_all(handle), valet_success);
    valet_free(handle);
}
