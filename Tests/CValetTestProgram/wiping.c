/* SPDX-License-Identifier: Apache-2.0 */
/* A freed buffer no longer contains the secret. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

/* Reads freed memory through /proc/self/mem, because reading through the pointer would be undefined behavior. */
static bool is_at(int memory, const void *place, const char *secret) {
    char found[64] = {0};
    size_t length = strlen(secret);
    return pread(memory, found, length, (off_t)(uintptr_t)place) == (ssize_t)length && memcmp(found, secret, length) == 0;
}

void check_wiping(void) {
    static const char secret[] = "open sesame, and then some more words";
    valet *handle = new_valet("Wiping");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    CHECK(memory >= 0);
    CHECK_STATUS(valet_set_string(handle, NUL("key"), NUL(secret)), valet_success);
    uint8_t *bytes = NULL;
    char *text = NULL;
    size_t length = 0;
    CHECK_STATUS(valet_get(handle, NUL("key"), &bytes, &length), valet_success);
    CHECK_STATUS(valet_get_string(handle, NUL("key"), &text, NULL), valet_success);
    CHECK(is_at(memory, bytes, secret) && is_at(memory, text, secret));
    /* The size of the buffer does not depend on the variable of the caller. */
    length = 0;
    const volatile uintptr_t places[] = {(uintptr_t)bytes, (uintptr_t)text};
    valet_buffer_free(bytes);
    valet_buffer_free(text);
    for (int i = 0; i < 2; i++) {
        CHECK(!is_at(memory, (const void *)places[i], secret));
        /* The allocator may have overwritten the beginning, but not the end. */
        CHECK(!is_at(memory, (const void *)(places[i] + 18), secret + 18));
    }
    close(memory);
    CHECK_STATUS(valet_remove_all(handle), valet_success);
    valet_free(handle);
}
