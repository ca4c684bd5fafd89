/* SPDX-License-Identifier: Apache-2.0 */
/* Migrations by query, from another valet, and with a callback copy all items or none. */
#include "check.h"

enum { refused_by_this_program = valet_status_first_of_caller + 7 };

struct mapping {
    int calls;
    const char *refuse;
    bool outputs_same_key;
};

static valet_status map(void *context, const valet_pair *pair, valet_output *output) {
    struct mapping *mapping = context;
    mapping->calls++;
    CHECK(pair->key_type == valet_value_text && ((const char *)pair->key)[pair->key_length] == 0);
    CHECK(pair->value_length > 0 && pair->value != NULL);
    if (mapping->refuse != NULL && strcmp(pair->key, mapping->refuse) == 0) return refused_by_this_program;
    if (strcmp(pair->key, "left out") == 0) return valet_success;
    /* The buffer is on the stack of the callback, so the library must copy it. */
    char key[64];
    snprintf(key, sizeof key, "new %s", mapping->outputs_same_key ? "key" : (const char *)pair->key);
    CHECK_STATUS(valet_output_set(output, NUL(key), NULL, 3), valet_error_null_argument);
    CHECK_STATUS(valet_output_set(output, NUL("\xff"), "v", 1), valet_error_not_utf8);
    CHECK_STATUS(valet_output_set(output, NUL("not this"), "v", 1), valet_success);
    return valet_output_set(output, NUL(key), pair->value, pair->value_length);
}

static int count_of(valet *handle);

static void check_maps(valet *source, valet *destination) {
    struct mapping mapping = {.refuse = "b"};
    CHECK_STATUS(valet_set_string(source, NUL("left out"), NUL("3")), valet_success);
    CHECK_STATUS(valet_migrate_from_with_map(destination, source, map, &mapping), refused_by_this_program);
    CHECK(count_of(destination) == 0);
    mapping.refuse = NULL;
    mapping.outputs_same_key = true;
    CHECK_STATUS(valet_migrate_from_with_map(destination, source, map, &mapping), valet_error_duplicate_key_to_migrate);
    CHECK(count_of(destination) == 0);
    mapping = (struct mapping){0};
    CHECK_STATUS(valet_migrate_from_with_map(destination, source, map, &mapping), valet_success);
    CHECK(mapping.calls == 3 && count_of(destination) == 2 && count_of(source) == 3);
    CHECK(has(destination, "new a", "1") && has(destination, "new b", "2"));
    CHECK_STATUS(valet_remove_all(destination), valet_success);
    CHECK_STATUS(valet_remove(source, NUL("left out")), valet_success);
}

static void check_queries(valet *destination) {
    valet *source = NULL;
    CHECK_STATUS(valet_create_explicit(NUL("Service"), valet_accessibility_when_unlocked, &source), valet_success);
    CHECK_STATUS(valet_set_string(source, NUL("a"), NUL("1")), valet_success);
    CHECK_STATUS(valet_set_string(source, NUL("b"), NUL("2")), valet_success);
    valet_query_entry query[] = {
        {.name = valet_attribute_class, .type = valet_value_text, .bytes = valet_class_generic_password, .length = valet_nul_terminated},
        {.name = valet_attribute_service, .type = valet_value_text, .bytes = "Service and more", .length = 7},
        {.name = valet_attribute_synchronizable, .type = valet_value_boolean, .number = 0},
        {.name = valet_attribute_account, .type = valet_value_text, .bytes = "b", .length = 1},
    };
    CHECK_STATUS(valet_migrate_matching(destination, NULL, 0, false), valet_error_invalid_query);
    CHECK_STATUS(valet_migrate_matching(destination, query + 1, 2, false), valet_error_invalid_query);
    CHECK_STATUS(valet_migrate_matching(destination, NULL, 2, false), valet_error_null_argument);
    valet_query_entry wrong[] = {query[0], query[1], query[1]};
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_invalid_query);
    wrong[2].name = NULL;
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_null_argument);
    wrong[2].name = valet_attribute_label;
    wrong[2].type = 6;
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_unknown_constant);
    wrong[2] = (valet_query_entry){.name = "mdat", .type = valet_value_date, .seconds = 0.0 / 0.0};
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_invalid_query);
    wrong[2].seconds = 12345;
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_item_not_found);
    wrong[2] = (valet_query_entry){.name = valet_attribute_type, .type = valet_value_number, .number = 7};
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_item_not_found);
    wrong[2] = (valet_query_entry){.name = valet_attribute_generic, .type = valet_value_bytes, .bytes = "\0\xff", .length = 2};
    CHECK_STATUS(valet_migrate_matching(destination, wrong, 3, false), valet_error_item_not_found);
    CHECK(count_of(destination) == 0);

    CHECK_STATUS(valet_migrate_matching(destination, query, 4, true), valet_success);
    CHECK(has(destination, "b", "2") && count_of(destination) == 1 && count_of(source) == 1);
    CHECK_STATUS(valet_migrate_matching(destination, query, 3, false), valet_success);
    CHECK(has(destination, "a", "1") && count_of(source) == 1);
    CHECK_STATUS(valet_migrate_matching(destination, query, 3, false), valet_error_key_to_migrate_already_exists);
    struct mapping mapping = {0};
    CHECK_STATUS(valet_migrate_matching_with_map(destination, query, 3, map, &mapping), valet_success);
    CHECK(has(destination, "new a", "1") && mapping.calls == 1);
    CHECK_STATUS(valet_remove_all(source), valet_success);
    CHECK_STATUS(valet_migrate_matching(destination, query, 3, false), valet_error_item_not_found);
    CHECK_STATUS(valet_remove_all(destination), valet_success);
    valet_free(source);
}

void check_migrations(void) {
    valet *source = new_valet("Source"), *destination = new_valet("Destination");
    CHECK_STATUS(valet_migrate_from(destination, source, true), valet_error_item_not_found);
    CHECK_STATUS(valet_set_string(source, NUL("a"), NUL("1")), valet_success);
    CHECK_STATUS(valet_set_string(source, NUL("b"), NUL("2")), valet_success);
    check_maps(source, destination);
    check_queries(destination);

    CHECK_STATUS(valet_set_string(destination, NUL("b"), NUL("older")), valet_success);
    CHECK_STATUS(valet_migrate_from(destination, source, true), valet_error_key_to_migrate_already_exists);
    CHECK(count_of(destination) == 1 && count_of(source) == 2);
    CHECK_STATUS(valet_remove_all(destination), valet_success);
    CHECK_STATUS(valet_migrate_from(destination, source, true), valet_success);
    CHECK(has(destination, "a", "1") && has(destination, "b", "2") && count_of(source) == 0);

    CHECK_STATUS(valet_migrate_from_always_accessible(destination, true), valet_error_item_not_found);
    CHECK_STATUS(valet_migrate_from_always_accessible_this_device_only(destination, true), valet_error_item_not_found);
    CHECK_STATUS(valet_migrate_from_pre_catalina(destination), valet_success);
    CHECK_STATUS(valet_remove_all(destination), valet_success);
    valet_free(source);
    valet_free(destination);
}

static bool count_one(void *context, const char *key, size_t key_length) {
    (void)key, (void)key_length;
    ++*(int *)context;
    return true;
}

static int count_of(valet *handle) {
    int count = 0;
    CHECK_STATUS(valet_all_keys(handle, count_one, &count), valet_success);
    return count;
}
