/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that creates a valet: each valet has its own values, and invalid parameters are refused. */
#include "check.h"

#define APP_ID valet_group_prefix_app_id
#define GROUP valet_group_prefix_application_group

static void check_refusals(void) {
    valet *handle = (valet *)"not touched";
    const valet_accessibility when = valet_accessibility_when_unlocked;
    CHECK_STATUS(valet_create(NUL("Druidia"), when, NULL), valet_error_null_argument);
    CHECK_STATUS(valet_create(NULL, 5, when, &handle), valet_error_null_argument);
    CHECK(handle == NULL);
    CHECK_STATUS(valet_create(NULL, valet_nul_terminated, when, &handle), valet_error_null_argument);
    CHECK_STATUS(valet_create(NULL, 0, when, &handle), valet_error_empty_identifier);
    CHECK_STATUS(valet_create(NUL(""), when, &handle), valet_error_empty_identifier);
    CHECK_STATUS(valet_create("Druidia", SIZE_MAX - 1, when, &handle), valet_error_invalid_length);
    CHECK_STATUS(valet_create(NUL("\xff"), when, &handle), valet_error_not_utf8);
    static const valet_accessibility none[] = {0, 3, 7, -1, INT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_STATUS(valet_create(NUL("Druidia"), none[i], &handle), valet_error_unknown_constant);
        CHECK_STATUS(valet_create_icloud(NUL("Druidia"), none[i], &handle), valet_error_unknown_constant);
        CHECK_STATUS(valet_create_explicit(NUL("Druidia"), none[i], &handle), valet_error_unknown_constant);
    }
    /* An iCloud valet has no accessibility for this device only. */
    CHECK_STATUS(
        valet_create_icloud(NUL("Druidia"), valet_accessibility_when_unlocked_this_device_only, &handle), valet_error_unknown_constant);
    CHECK_STATUS(valet_create_shared(APP_ID, NUL(""), NUL("Druidia"), NULL, 0, when, &handle), valet_error_empty_identifier);
    CHECK_STATUS(valet_create_shared(APP_ID, NUL("ID12345"), NUL(""), NULL, 0, when, &handle), valet_error_empty_identifier);
    CHECK_STATUS(valet_create_shared(GROUP, NUL("grupp"), NUL("Druidia"), NULL, 0, when, &handle), valet_error_invalid_group_prefix);
    CHECK_STATUS(valet_create_shared(9, NUL("group"), NUL("Druidia"), NULL, 0, when, &handle), valet_error_unknown_constant);
    CHECK_STATUS(
        valet_create_shared(APP_ID, NULL, valet_nul_terminated, NUL("Druidia"), NULL, 0, when, &handle), valet_error_null_argument);
    CHECK_STATUS(
        valet_create_explicit_shared(GROUP, NUL("group"), NULL, 1, when, &handle), valet_error_null_argument);
    valet_enclave *enclave = (valet_enclave *)"not touched";
    CHECK_STATUS(valet_enclave_create(NUL("Druidia"), 5, &enclave), valet_error_unknown_constant);
    CHECK(enclave == NULL);
    CHECK_STATUS(valet_enclave_create(NUL(""), valet_access_control_user_presence, &enclave), valet_error_empty_identifier);
    valet_single_prompt *single_prompt = (valet_single_prompt *)"not touched";
    CHECK_STATUS(valet_single_prompt_create(NUL("Druidia"), 0, &single_prompt), valet_error_unknown_constant);
    CHECK(single_prompt == NULL);
    CHECK(handle == NULL);
}

static void check_identity(void) {
    valet *one = new_valet("Druidia"), *same = new_valet("Druidia"), *other = new_valet("Spaceball");
    CHECK(valet_is_equal(one, same) && valet_hash(one) == valet_hash(same) && !valet_is_equal(one, other));
    char *text = NULL;
    size_t length = 0;
    CHECK_STATUS(valet_describe(one, &text, &length), valet_success);
    CHECK(strcmp(text, "Druidia AccessibleWhenUnlocked (Valet)") == 0 && length == strlen(text));
    valet_buffer_free(text);
    valet_free(one);
    /* Freeing one handle does not affect the other. */
    CHECK_STATUS(valet_set_string(same, NUL("Skroob"), NUL("12345")), valet_success);
    CHECK(!has(other, "Skroob", "12345"));
    CHECK_STATUS(valet_remove_all(same), valet_success);
    valet_free(same);
    valet_free(other);

    /* A NUL inside an identifier is part of it. */
    valet *inside = NULL, *before = new_valet("a");
    CHECK_STATUS(valet_create("a\0b", 3, valet_accessibility_when_unlocked, &inside), valet_success);
    CHECK(!valet_is_equal(inside, before));
    CHECK_STATUS(valet_describe(inside, &text, NULL), valet_error_embedded_nul);
    CHECK(text == NULL);
    valet_free(inside);
    valet_free(before);
}

void check_making(void) {
    check_refusals();
    check_identity();

    valet *made[10] = {NULL};
    const valet_accessibility when = valet_accessibility_after_first_unlock;
    const valet_cloud_accessibility cloud = valet_cloud_accessibility_after_first_unlock;
    CHECK_STATUS(valet_create(NUL("Name"), when, &made[0]), valet_success);
    CHECK_STATUS(valet_create_icloud(NUL("Name"), cloud, &made[1]), valet_success);
    CHECK_STATUS(valet_create_explicit(NUL("Name"), when, &made[2]), valet_success);
    CHECK_STATUS(valet_create_icloud_explicit(NUL("Name"), cloud, &made[3]), valet_success);
    CHECK_STATUS(valet_create_shared(APP_ID, NUL("ID12345"), NUL("Name"), NULL, 0, when, &made[4]), valet_success);
    CHECK_STATUS(valet_create_shared(APP_ID, NUL("ID12345"), NUL("Name"), NUL("More"), when, &made[5]), valet_success);
    CHECK_STATUS(valet_create_icloud_shared(APP_ID, NUL("ID12345"), NUL("Name"), NULL, 0, cloud, &made[6]), valet_success);
    CHECK_STATUS(valet_create_explicit_shared(APP_ID, NUL("ID12345"), NUL("Name"), when, &made[7]), valet_success);
    CHECK_STATUS(valet_create_icloud_explicit_shared(APP_ID, NUL("ID12345"), NUL("Name"), cloud, &made[8]), valet_success);
    CHECK_STATUS(valet_create_shared(GROUP, NUL("group"), NUL("Name"), NULL, 0, when, &made[9]), valet_success);
    char text[8];
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < i; j++) CHECK(!valet_is_equal(made[i], made[j]));
        snprintf(text, sizeof text, "%d", i);
        /* The entitlements of this program list no group. */
        valet_status expected = i < 4 ? valet_success : valet_error_missing_entitlement;
        CHECK_STATUS(valet_set_string(made[i], NUL("key"), NUL(text)), expected);
        CHECK(valet_can_access(made[i]) == (i < 4));
    }
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "%d", i);
        CHECK(has(made[i], "key", text) == (i < 4));
        if (i < 4) CHECK_STATUS(valet_remove_all(made[i]), valet_success);
        valet_free(made[i]);
    }
}
