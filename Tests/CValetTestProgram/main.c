/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the interface as a C program, on the keychain of the environment: `CValetTestProgram CASE [ROUNDS]`. Exits with 0 if all checks
   succeed; otherwise prints a line for each failure. */
#include "check.h"

atomic_int failed_checks;

valet *new_valet(const char *identifier) {
    valet *handle = NULL;
    CHECK_STATUS(valet_create(NUL(identifier), valet_accessibility_when_unlocked, &handle), valet_success);
    CHECK(handle != NULL);
    return handle;
}

bool has(valet *handle, const char *key, const char *value) {
    char *text = NULL;
    bool is_there = valet_get_string(handle, NUL(key), &text, NULL) == valet_success && strcmp(text, value) == 0;
    valet_buffer_free(text);
    return is_there;
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    long rounds = count > 2 ? atol(words[2]) : 10000;
    bool all = strcmp(name, "all") == 0;
    int run = 0;
#define CASE(word, call) \
    if (all || strcmp(name, word) == 0) { \
        call; \
        run++; \
    }
    CASE("arguments", check_arguments())
    CASE("values", check_values())
    CASE("keys", check_keys())
    CASE("making", check_making())
    CASE("migrations", check_migrations())
    CASE("enclaves", check_enclaves())
    CASE("wiping", check_wiping())
    CASE("forks", check_forks())
    CASE("threads", check_threads())
    CASE("growth", check_growth(rounds))
    /* Not part of `all`. */
    all = false;
    CASE("planted-leak", plant_leak())
    CASE("planted-use-after-free", plant_use_after_free())
    if (run == 0) {
        fprintf(stderr, "There is no case \"%s\".\n", name);
        return 2;
    }
    printf("%d cases, %d checks failed\n", run, failed_checks);
    return failed_checks == 0 ? 0 : 1;
}
