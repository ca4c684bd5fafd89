/* SPDX-License-Identifier: Apache-2.0 */
/* Storing, reading, checking, and removing values. */
#include "check.h"

void check_values(void) {
    valet *handle = new_valet("Values");
    uint8_t *bytes = NULL;
    char *text = NULL;
    size_t length = 7;
    bool result = true;

    CHECK(valet_can_access(handle));
    CHECK_STATUS(valet_get(handle, NUL("Skroob"), &bytes, &length), valet_error_item_not_found);
    CHECK(bytes == NULL && length == 0);
    CHECK_STATUS(valet_contains(handle, NUL("Skroob"), &result), valet_success);
    CHECK(!result);
    CHECK_STATUS(valet_remove(handle, NUL("Skroob")), valet_success);

    CHECK_STATUS(valet_set_string(handle, NUL("Skroob"), NUL("12345")), valet_success);
    CHECK(has(handle, "Skroob", "12345"));
    CHECK_STATUS(valet_set_string(handle, TEXT("Skroob"), "67890 and more", 5), valet_success);
    CHECK(has(handle, "Skroob", "67890"));
    CHECK_STATUS(valet_contains(handle, "Skroob and more", 6, &result), valet_success);
    CHECK(result);

    /* A refused call keeps the existing value. */
    CHECK_STATUS(valet_set(handle, NUL("Skroob"), NULL, 0), valet_error_empty_value);
    CHECK_STATUS(valet_set_string(handle, NUL("Skroob"), NUL("\xff")), valet_error_not_utf8);
    CHECK(has(handle, "Skroob", "67890"));

    /* Any bytes. A NUL that the length does not include follows them. */
    static const uint8_t anything[] = {0, 1, 0xff, 0, 0x80, 0};
    CHECK_STATUS(valet_set(handle, NUL("bytes"), anything, sizeof anything), valet_success);
    CHECK_STATUS(valet_get(handle, NUL("bytes"), &bytes, &length), valet_success);
    CHECK(length == sizeof anything && memcmp(bytes, anything, length) == 0 && bytes[length] == 0);
    valet_buffer_free(bytes);
    CHECK_STATUS(valet_get_string(handle, NUL("bytes"), &text, &length), valet_error_item_not_found);
    CHECK(text == NULL && length == 0);

    /* A NUL inside is part of the text. Such text is refused without a pointer for its length. */
    CHECK_STATUS(valet_set_string(handle, NUL("inside"), "a\0b", 3), valet_success);
    CHECK_STATUS(valet_get_string(handle, NUL("inside"), &text, &length), valet_success);
    CHECK(length == 3 && memcmp(text, "a\0b", 4) == 0);
    valet_buffer_free(text);
    text = "not touched";
    CHECK_STATUS(valet_get_string(handle, NUL("inside"), &text, NULL), valet_error_embedded_nul);
    CHECK(text == NULL);

    /* A NUL inside a key is part of the key. */
    CHECK_STATUS(valet_set_string(handle, "k\0x", 3, NUL("whole")), valet_success);
    CHECK_STATUS(valet_contains(handle, NUL("k"), &result), valet_success);
    CHECK(!result);
    CHECK_STATUS(valet_contains(handle, "k\0x", 3, &result), valet_success);
    CHECK(result);

    /* Two spellings of é are two keys. */
    CHECK_STATUS(valet_set_string(handle, NUL("\xc3\xa9"), NUL("one")), valet_success);
    CHECK_STATUS(valet_contains(handle, NUL("e\xcc\x81"), &result), valet_success);
    CHECK(!result);

    /* Large values are returned completely. */
    size_t large = 300000;
    uint8_t *filled = malloc(large);
    for (size_t i = 0; i < large; i++) filled[i] = (uint8_t)(i * 7);
    CHECK_STATUS(valet_set(handle, NUL("large"), filled, large), valet_success);
    CHECK_STATUS(valet_get(handle, NUL("large"), &bytes, &length), valet_success);
    CHECK(length == large && memcmp(bytes, filled, large) == 0);
    valet_buffer_free(bytes);
    free(filled);

    CHECK_STATUS(valet_remove(handle, NUL("Skroob")), valet_success);
    CHECK_STATUS(valet_get_string(handle, NUL("Skroob"), &text, NULL), valet_error_item_not_found);
    CHECK_STATUS(valet_remove_all(handle), valet_success);
    CHECK_STATUS(valet_contains(handle, NUL("bytes"), &result), valet_success);
    CHECK(!result);
    valet_free(handle);
}
