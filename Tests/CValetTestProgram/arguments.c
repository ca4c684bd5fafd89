/* SPDX-License-Identifier: Apache-2.0 */
/* NULL, wrong lengths, invalid text, and handles of another type: each has its status, and nothing is stored. */
#include <pthread.h>

#include "check.h"

static bool never_called(void *context, const char *key, size_t key_length) {
    (void)context, (void)key, (void)key_length;
    CHECK(!"called back");
    return true;
}

static valet_status never_mapped(void *context, const valet_pair *pair, valet_output *output) {
    (void)context, (void)pair, (void)output;
    CHECK(!"called back");
    return valet_success;
}

/* More than half the address space, and one less than valet_nul_terminated. */
static const size_t too_long = SIZE_MAX - 1;

static void check_null(valet *handle) {
    uint8_t *bytes = (uint8_t *)"not touched";
    char *text = "not touched";
    size_t length = 7;
    bool result = true;
    CHECK_STATUS(valet_set(NULL, NUL("key"), "v", 1), valet_error_null_argument);
    CHECK_STATUS(valet_set_string(NULL, NUL("key"), NUL("v")), valet_error_null_argument);
    CHECK_STATUS(valet_get(NULL, NUL("key"), &bytes, &length), valet_error_null_argument);
    CHECK(bytes == NULL && length == 0);
    length = 7;
    CHECK_STATUS(valet_get_string(NULL, NUL("key"), &text, &length), valet_error_null_argument);
    CHECK(text == NULL && length == 0);
    CHECK_STATUS(valet_contains(NULL, NUL("key"), &result), valet_error_null_argument);
    CHECK(!result);
    CHECK_STATUS(valet_remove(NULL, NUL("key")), valet_error_null_argument);
    CHECK_STATUS(valet_remove_all(NULL), valet_error_null_argument);
    CHECK_STATUS(valet_all_keys(NULL, never_called, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_describe(NULL, &text, &length), valet_error_null_argument);
    CHECK(!valet_can_access(NULL));
    CHECK(valet_hash(NULL) == 0);
    CHECK(valet_is_equal(NULL, NULL) && !valet_is_equal(handle, NULL) && !valet_is_equal(NULL, handle));
    CHECK_STATUS(valet_migrate_matching(NULL, NULL, 0, false), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from(NULL, handle, false), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from(handle, NULL, false), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from_with_map(handle, handle, NULL, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from_with_map(handle, NULL, never_mapped, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_matching_with_map(handle, NULL, 1, never_mapped, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from_always_accessible(NULL, true), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from_always_accessible_this_device_only(NULL, true), valet_error_null_argument);
    CHECK_STATUS(valet_migrate_from_pre_catalina(NULL), valet_error_null_argument);
    CHECK_STATUS(valet_output_set(NULL, NUL("key"), "v", 1), valet_error_null_argument);

    /* NULL pointers for results and texts. */
    CHECK_STATUS(valet_get(handle, NUL("key"), NULL, &length), valet_error_null_argument);
    CHECK_STATUS(valet_get(handle, NUL("key"), &bytes, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_get_string(handle, NUL("key"), NULL, &length), valet_error_null_argument);
    CHECK_STATUS(valet_contains(handle, NUL("key"), NULL), valet_error_null_argument);
    CHECK_STATUS(valet_all_keys(handle, NULL, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_describe(handle, NULL, &length), valet_error_null_argument);
    CHECK_STATUS(valet_set(handle, NULL, 3, "v", 1), valet_error_null_argument);
    CHECK_STATUS(valet_set(handle, NULL, valet_nul_terminated, "v", 1), valet_error_null_argument);
    CHECK_STATUS(valet_set(handle, NUL("key"), NULL, 1), valet_error_null_argument);
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NULL, valet_nul_terminated), valet_error_null_argument);
    CHECK_STATUS(valet_remove(handle, NULL, 1), valet_error_null_argument);

    /* NULL with the length 0 is empty. */
    CHECK_STATUS(valet_set(handle, NULL, 0, "v", 1), valet_error_empty_key);
    CHECK_STATUS(valet_set(handle, NUL(""), "v", 1), valet_error_empty_key);
    CHECK_STATUS(valet_set(handle, NUL("key"), NULL, 0), valet_error_empty_value);
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NULL, 0), valet_error_empty_value);
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL("")), valet_error_empty_value);
    CHECK_STATUS(valet_get(handle, NULL, 0, &bytes, &length), valet_error_empty_key);
    CHECK_STATUS(valet_contains(handle, NUL(""), &result), valet_error_empty_key);
    CHECK_STATUS(valet_remove(handle, NUL("")), valet_error_empty_key);
}

static void check_lengths_and_text(valet *handle) {
    uint8_t *bytes = NULL;
    size_t length = 0;
    CHECK_STATUS(valet_set(handle, "key", too_long, "v", 1), valet_error_invalid_length);
    CHECK_STATUS(valet_set(handle, NUL("key"), "v", too_long), valet_error_invalid_length);
    CHECK_STATUS(valet_set(handle, NUL("key"), "v", SIZE_MAX / 2 + 1), valet_error_invalid_length);
    CHECK_STATUS(valet_set(handle, NUL("key"), "v", valet_nul_terminated), valet_error_invalid_length);
    CHECK_STATUS(valet_set_string(handle, NUL("key"), "v", too_long), valet_error_invalid_length);
    CHECK_STATUS(valet_get(handle, "key", too_long, &bytes, &length), valet_error_invalid_length);
    CHECK_STATUS(valet_migrate_matching(handle, NULL, SIZE_MAX, false), valet_error_invalid_length);

    static const char *const not_utf8[] = {"\xff", "a\x80", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof not_utf8 / sizeof *not_utf8; i++) {
        CHECK_STATUS(valet_set(handle, NUL(not_utf8[i]), "v", 1), valet_error_not_utf8);
        CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL(not_utf8[i])), valet_error_not_utf8);
        CHECK_STATUS(valet_remove(handle, NUL(not_utf8[i])), valet_error_not_utf8);
    }
    /* A length that ends inside a character. */
    CHECK_STATUS(valet_set_string(handle, NUL("key"), "\xc3\xa9", 1), valet_error_not_utf8);
}

/* A C compiler rejects such handles, but other languages, such as Python with ctypes, do not. */
static void check_wrong_handles(valet *handle) {
    valet_enclave *enclave = NULL;
    valet_single_prompt *single_prompt = NULL;
    CHECK_STATUS(valet_enclave_create(NUL("Druidia"), valet_access_control_user_presence, &enclave), valet_success);
    CHECK_STATUS(valet_single_prompt_create(NUL("Druidia"), valet_access_control_user_presence, &single_prompt), valet_success);
    bool result = true;
    CHECK_STATUS(valet_contains((valet *)enclave, NUL("key"), &result), valet_error_wrong_handle);
    CHECK(!result);
    CHECK_STATUS(valet_set((valet *)single_prompt, NUL("key"), "v", 1), valet_error_wrong_handle);
    CHECK_STATUS(valet_enclave_contains((valet_enclave *)handle, NUL("key"), &result), valet_error_wrong_handle);
    CHECK_STATUS(valet_single_prompt_contains((valet_single_prompt *)enclave, NUL("key"), &result), valet_error_wrong_handle);
    CHECK_STATUS(valet_migrate_from(handle, (valet *)enclave, false), valet_error_wrong_handle);
    CHECK_STATUS(valet_output_set((valet_output *)handle, NUL("key"), "v", 1), valet_error_wrong_handle);
    CHECK(!valet_can_access((valet *)enclave) && valet_hash((valet *)enclave) == 0);
    CHECK(!valet_is_equal(handle, (valet *)enclave));
    /* The wrong function does not free the handle, so the right one still can. */
    valet_free((valet *)enclave);
    CHECK_STATUS(valet_enclave_contains(enclave, NUL("key"), &result), valet_success);
    valet_enclave_free(enclave);
    valet_single_prompt_free(single_prompt);
}

static void check_statuses(void) {
    static const valet_status statuses[] = {
        valet_success, valet_error_could_not_access_keychain, valet_error_user_cancelled, valet_error_item_not_found,
        valet_error_missing_entitlement, valet_error_empty_key, valet_error_empty_value, valet_error_invalid_query,
        valet_error_key_to_migrate_invalid, valet_error_data_to_migrate_invalid, valet_error_duplicate_key_to_migrate,
        valet_error_key_to_migrate_already_exists, valet_error_removal_failed, valet_error_null_argument, valet_error_invalid_length,
        valet_error_not_utf8, valet_error_unknown_constant, valet_error_wrong_handle, valet_error_empty_identifier,
        valet_error_invalid_group_prefix, valet_error_embedded_nul, valet_error_no_memory, valet_status_first_of_caller,
    };
    size_t count = sizeof statuses / sizeof *statuses;
    for (size_t i = 0; i < count; i++) {
        CHECK(strcmp(valet_status_text(statuses[i]), "unknown status") != 0);
        for (size_t j = 0; j < i; j++) CHECK(strcmp(valet_status_text(statuses[i]), valet_status_text(statuses[j])) != 0);
    }
    static const valet_status unknown[] = {-1, 7, 99, 100, 107, 200, 210, 999, INT32_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) CHECK(strcmp(valet_status_text(unknown[i]), "unknown status") == 0);
    CHECK(strcmp(valet_status_text(INT32_MAX), valet_status_text(valet_status_first_of_caller)) == 0);
    CHECK(valet_library_interface_version() == valet_interface_version);
    CHECK(strlen(valet_version()) >= strlen("1.2.3"));
}

static void *read_reason(void *context) {
    *(const char **)context = valet_failure_reason();
    return NULL;
}

/* Why the last call of the thread failed; NULL where the status says everything. */
static void check_reasons(valet *handle) {
    CHECK(valet_failure_reason() == NULL);
    valet *old = NULL, *new = NULL;
    CHECK_STATUS(valet_create_explicit(NUL("Reasons"), valet_accessibility_when_unlocked, &old), valet_success);
    CHECK_STATUS(valet_create_explicit(NUL("Reasons"), valet_accessibility_after_first_unlock, &new), valet_success);
    CHECK_STATUS(valet_set_string(old, NUL("key"), NUL("12345")), valet_success);
    CHECK_STATUS(valet_set_string(new, NUL("key"), NUL("54321")), valet_error_could_not_access_keychain);
    const char *reason = valet_failure_reason();
    CHECK(reason != NULL && strstr(reason, "accessibility") != NULL && strstr(reason, "54321") == NULL);
    /* It stays until another call of this thread fails. */
    CHECK_STATUS(valet_remove(old, NUL("key")), valet_success);
    CHECK(valet_failure_reason() == reason);
    const char *other = "";
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_reason, &other) == 0 && pthread_join(thread, NULL) == 0 && other == NULL);
    bool result;
    CHECK_STATUS(valet_contains(handle, NULL, 1, &result), valet_error_null_argument);
    CHECK(valet_failure_reason() == NULL);
    valet_free(old);
    valet_free(new);
}

void check_arguments(void) {
    valet *handle = new_valet("Arguments");
    check_reasons(handle);
    check_statuses();
    check_null(handle);
    check_lengths_and_text(handle);
    check_wrong_handles(handle);
    /* Nothing was stored. */
    CHECK_STATUS(valet_all_keys(handle, never_called, NULL), valet_success);
    valet_free(handle);
    valet_free(NULL);
    valet_enclave_free(NULL);
    valet_single_prompt_free(NULL);
    valet_buffer_free(NULL);
}
