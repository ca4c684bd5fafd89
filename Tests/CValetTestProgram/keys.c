/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for keys. */
#include "check.h"

struct seen {
    valet *handle;
    char keys[256];
    int count, enough;
};

static bool note(void *context, const char *key, size_t key_length) {
    struct seen *seen = context;
    CHECK(key[key_length] == 0);
    strncat(seen->keys, key, key_length);
    strcat(seen->keys, " ");
    /* A callback may use the valet of the outer call. */
    CHECK_STATUS(valet_remove(seen->handle, key, key_length), valet_success);
    return ++seen->count < seen->enough;
}

void check_keys(void) {
    struct seen seen = {.handle = new_valet("Keys"), .enough = 100};
    CHECK_STATUS(valet_all_keys(seen.handle, note, &seen), valet_success);
    CHECK(seen.count == 0);

    static const char *const keys[] = {"b", "a", "\xc3\xa9", "z", "B", "aa"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK_STATUS(valet_set_string(seen.handle, NUL(keys[i]), NUL("v")), valet_success);

    /* Keys come in the order of their bytes, until the callback stops. */
    seen.enough = 2;
    CHECK_STATUS(valet_all_keys(seen.handle, note, &seen), valet_success);
    CHECK(strcmp(seen.keys, "B a ") == 0);
    seen.keys[0] = 0;
    seen.enough = 100;
    CHECK_STATUS(valet_all_keys(seen.handle, note, &seen), valet_success);
    CHECK(strcmp(seen.keys, "aa b z \xc3\xa9 ") == 0);
    CHECK(seen.count == 6);

    /* A composed and a decomposed letter are two keys. */
    CHECK_STATUS(valet_set_string(seen.handle, NUL("\xc3\xa9"), NUL("composed")), valet_success);
    CHECK_STATUS(valet_set_string(seen.handle, NUL("e\xcc\x81"), NUL("in parts")), valet_success);
    seen.keys[0] = 0;
    CHECK_STATUS(valet_all_keys(seen.handle, note, &seen), valet_success);
    CHECK(strcmp(seen.keys, "e\xcc\x81 \xc3\xa9 ") == 0);
    valet_free(seen.handle);
}
