/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that each instrument must find; otherwise its clean report would prove nothing. */
#include "check.h"

void plant_leak(void) {
    valet *handle = new_valet("Planted");
    uint8_t *bytes = NULL;
    size_t length = 0;
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL("12345")), valet_success);
    for (int i = 0; i < 100; i++) CHECK_STATUS(valet_get(handle, NUL("key"), &bytes, &length), valet_success);
    valet_buffer_free(bytes);
    valet_free(handle);
}

void plant_use_after_free(void) {
    valet *handle = new_valet("Planted");
    char *volatile text = NULL;
    CHECK_STATUS(valet_describe(handle, (char **)&text, NULL), valet_success);
    valet_buffer_free(text);
    printf("%d\n", text[0]);
    valet_free(handle);
}
