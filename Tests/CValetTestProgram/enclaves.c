/* SPDX-License-Identifier: Apache-2.0 */
/* Without a passcode, nothing can be stored and no prompt is shown. Tests in Swift cover the answers to prompts. */
#include "check.h"

static bool never_called(void *context, const char *key, size_t key_length) {
    (void)context, (void)key, (void)key_length;
    CHECK(!"called back");
    return true;
}

static void check_enclave(valet *source) {
    valet_enclave *handle = NULL, *shared = NULL;
    CHECK_STATUS(valet_enclave_create(NUL("Enclave"), valet_access_control_device_passcode, &handle), valet_success);
    CHECK_STATUS(
        valet_enclave_create_shared(
            valet_group_prefix_app_id, NUL("ID12345"), NUL("Name"), NUL("More"), valet_access_control_user_presence, &shared),
        valet_success);
    CHECK(valet_enclave_is_equal(handle, handle) && !valet_enclave_is_equal(handle, shared));
    CHECK(valet_enclave_hash(handle) == valet_enclave_hash(handle));
    char *text = NULL;
    uint8_t *bytes = NULL;
    size_t length = 7;
    bool result = true;
    CHECK_STATUS(valet_enclave_describe(handle, &text, NULL), valet_success);
    CHECK(strstr(text, "Enclave") == text && strstr(text, "(Secure Enclave)") != NULL);
    valet_buffer_free(text);
    CHECK(!valet_enclave_can_access(handle));
    CHECK_STATUS(valet_enclave_set(handle, NUL("key"), "v", 1), valet_error_could_not_access_keychain);
    CHECK_STATUS(valet_enclave_set_string(handle, NUL("key"), NUL("v")), valet_error_could_not_access_keychain);
    CHECK_STATUS(valet_enclave_set_string(handle, NUL(""), NUL("v")), valet_error_empty_key);
    CHECK_STATUS(valet_enclave_get(handle, NUL("key"), &bytes, &length), valet_error_item_not_found);
    CHECK(bytes == NULL && length == 0);
    CHECK_STATUS(valet_enclave_get_with_prompt(handle, NUL("key"), NUL("Why"), &bytes, &length), valet_error_item_not_found);
    CHECK_STATUS(valet_enclave_get_with_prompt(handle, NUL("key"), NULL, 3, &bytes, &length), valet_error_null_argument);
    CHECK_STATUS(valet_enclave_get_string(handle, NUL("key"), &text, NULL), valet_error_item_not_found);
    CHECK_STATUS(valet_enclave_get_string_with_prompt(handle, NUL("key"), NUL("\xff"), &text, NULL), valet_error_not_utf8);
    CHECK(text == NULL);
    CHECK_STATUS(valet_enclave_contains(handle, NUL("key"), &result), valet_success);
    CHECK(!result);
    CHECK_STATUS(valet_enclave_contains(shared, NUL("key"), &result), valet_error_missing_entitlement);
    CHECK_STATUS(valet_enclave_remove(handle, NUL("key")), valet_success);
    CHECK_STATUS(valet_enclave_remove_all(handle), valet_success);
    CHECK_STATUS(valet_enclave_migrate_matching(handle, NULL, 0, false), valet_error_invalid_query);
    CHECK_STATUS(valet_enclave_migrate_from(handle, source, true), valet_error_could_not_access_keychain);
    CHECK(has(source, "key", "value"));
    CHECK_STATUS(valet_enclave_migrate_from_single_prompt(handle, true), valet_error_item_not_found);
    valet_enclave_free(handle);
    valet_enclave_free(shared);
}

static void check_single_prompt(valet *source) {
    valet_single_prompt *handle = NULL, *shared = NULL;
    CHECK_STATUS(valet_single_prompt_create(NUL("Single"), valet_access_control_user_presence, &handle), valet_success);
    CHECK_STATUS(
        valet_single_prompt_create_shared(
            valet_group_prefix_application_group, NUL("group"), NUL("Name"), NULL, 0, valet_access_control_user_presence, &shared),
        valet_success);
    CHECK(valet_single_prompt_is_equal(handle, handle) && !valet_single_prompt_is_equal(handle, shared));
    CHECK(valet_single_prompt_hash(handle) == valet_single_prompt_hash(handle));
    char *text = NULL;
    uint8_t *bytes = NULL;
    size_t length = 7;
    bool result = true;
    CHECK_STATUS(valet_single_prompt_describe(handle, &text, &length), valet_success);
    CHECK(strstr(text, "(Single Prompt)") != NULL && length == strlen(text));
    valet_buffer_free(text);
    CHECK(!valet_single_prompt_can_access(handle));
    CHECK_STATUS(valet_single_prompt_require_prompt_on_next_access(handle), valet_success);
    CHECK_STATUS(valet_single_prompt_require_prompt_on_next_access(NULL), valet_error_null_argument);
    CHECK_STATUS(valet_single_prompt_set(handle, NUL("key"), "v", 1), valet_error_could_not_access_keychain);
    CHECK_STATUS(valet_single_prompt_set_string(handle, NUL("key"), NUL("")), valet_error_empty_value);
    CHECK_STATUS(valet_single_prompt_get_with_prompt(handle, NUL("key"), NUL("Why"), &bytes, &length), valet_error_item_not_found);
    CHECK_STATUS(valet_single_prompt_get_string_with_prompt(handle, NUL("key"), NULL, 0, &text, NULL), valet_error_item_not_found);
    CHECK_STATUS(valet_single_prompt_all_keys(handle, NUL("Why"), never_called, NULL), valet_success);
    CHECK_STATUS(valet_single_prompt_all_keys(handle, NUL("Why"), NULL, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_single_prompt_contains(handle, NUL("key"), &result), valet_success);
    CHECK(!result);
    CHECK_STATUS(valet_single_prompt_remove(handle, NUL("key")), valet_success);
    CHECK_STATUS(valet_single_prompt_remove_all(handle), valet_success);
    CHECK_STATUS(valet_single_prompt_migrate_matching(handle, NULL, 0, true), valet_error_invalid_query);
    CHECK_STATUS(valet_single_prompt_migrate_from(handle, source, true), valet_error_could_not_access_keychain);
    CHECK(has(source, "key", "value"));
    valet_single_prompt_free(handle);
    valet_single_prompt_free(shared);
}

void check_enclaves(void) {
    valet *source = new_valet("Enclaves");
    CHECK_STATUS(valet_set_string(source, NUL("key"), NUL("value")), valet_success);
    check_enclave(source);
    check_single_prompt(source);
    CHECK_STATUS(valet_remove_all(source), valet_success);
    valet_free(source);
}
