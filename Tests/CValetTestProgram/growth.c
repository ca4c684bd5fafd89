/* SPDX-License-Identifier: Apache-2.0 */
/* The memory in use does not grow with the number of rounds of create, use, and free. */
#include <malloc.h>

#include "check.h"

static bool continue_always(void *context, const char *key, size_t key_length) {
    (void)context, (void)key, (void)key_length;
    return true;
}

static valet_status copy_pair(void *context, const valet_pair *pair, valet_output *output) {
    (void)context;
    return valet_output_set(output, pair->key, pair->key_length, pair->value, pair->value_length);
}

static void one_round(long number) {
    char identifier[32];
    /* Repeated and new names: neither may leak. */
    snprintf(identifier, sizeof identifier, "Growth %ld", number);
    valet *fresh = new_valet(identifier), *handle = new_valet("Growth");
    valet_enclave *enclave = NULL;
    uint8_t *bytes = NULL;
    char *text = NULL;
    size_t length = 0;
    bool result = false;
    CHECK_STATUS(valet_enclave_create(NUL(identifier), valet_access_control_user_presence, &enclave), valet_success);
    CHECK_STATUS(valet_get(handle, NUL("key"), &bytes, &length), valet_success);
    CHECK_STATUS(valet_get_string(handle, NUL("key"), &text, NULL), valet_success);
    CHECK_STATUS(valet_contains(fresh, NUL("key"), &result), valet_success);
    CHECK(!result);
    CHECK_STATUS(valet_set(handle, NULL, 0, "v", 1), valet_error_empty_key);
    valet_buffer_free(bytes);
    CHECK_STATUS(valet_get(handle, NUL("none"), &bytes, &length), valet_error_item_not_found);
    CHECK(bytes == NULL);
    valet_buffer_free(text);
    CHECK_STATUS(valet_describe(handle, &text, &length), valet_success);
    valet_buffer_free(text);
    CHECK_STATUS(valet_all_keys(handle, continue_always, NULL), valet_success);
    /* Writes flush the disk, so they are less frequent. */
    if (number % 50 == 0) {
        CHECK_STATUS(valet_set_string(handle, NUL("other"), NUL(identifier)), valet_success);
        CHECK_STATUS(valet_migrate_from_with_map(fresh, handle, copy_pair, NULL), valet_success);
        CHECK_STATUS(valet_remove_all(fresh), valet_success);
    }
    valet_enclave_free(enclave);
    valet_free(handle);
    valet_free(fresh);
}

void check_growth(long rounds) {
    valet *handle = new_valet("Growth");
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL("12345")), valet_success);
    /* Fills the caches. */
    long warm_up = rounds / 5 + 1;
    for (long i = 0; i < warm_up; i++) one_round(i);
    size_t before = mallinfo2().uordblks;
    for (long i = 0; i < rounds; i++) one_round(warm_up + i);
    size_t after = mallinfo2().uordblks;
    size_t grown = after > before ? after - before : 0;
    printf("%ld rounds: %zu bytes in use before, %zu after\n", rounds, before, after);
    /* A leak in each of 3,000 rounds would exceed this limit, because malloc uses at least 32 bytes. Variations of caches and
       registries do not. */
    CHECK(grown < 64 * 1024);
    CHECK_STATUS(valet_remove_all(handle), valet_success);
    valet_free(handle);
}
