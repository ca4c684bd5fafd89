// SPDX-License-Identifier: Apache-2.0
// A module for tests in the place of pam_unix.so: asks for a password, and compares it with its argument `password=`. The argument `new=` is
// the password to which a change leads.
#define _GNU_SOURCE
#include <security/pam_ext.h>
#include <security/pam_modules.h>

#include "masked_text.h"

// Finds an argument and writes its text; returns 0 if it is missing.
static int find_text(const char *name, int argc, const char **argv, char *text) {
    for (int index = 0; index < argc; index++) {
        if (strncmp(argv[index], name, strlen(name)) != 0) continue;
        unmask(argv[index] + strlen(name), text);
        return 1;
    }
    return 0;
}

int pam_sm_authenticate(pam_handle_t *handle, int flags, int argc, const char **argv) {
    (void)flags;
    char expected[largest_text_byte_count + 1];
    const char *given = NULL;
    if (!find_text("password=", argc, argv, expected)) return PAM_SERVICE_ERR;
    int isEqual = pam_get_authtok(handle, PAM_AUTHTOK, &given, NULL) == PAM_SUCCESS && strcmp(given, expected) == 0;
    explicit_bzero(expected, sizeof(expected));
    return isEqual ? PAM_SUCCESS : PAM_AUTH_ERR;
}

int pam_sm_setcred(pam_handle_t *handle, int flags, int argc, const char **argv) {
    (void)handle, (void)flags, (void)argc, (void)argv;
    return PAM_SUCCESS;
}

int pam_sm_chauthtok(pam_handle_t *handle, int flags, int argc, const char **argv) {
    char text[largest_text_byte_count + 1];
    int item = (flags & PAM_PRELIM_CHECK) != 0 ? PAM_OLDAUTHTOK : PAM_AUTHTOK;
    if (find_text(item == PAM_OLDAUTHTOK ? "password=" : "new=", argc, argv, text)) pam_set_item(handle, item, text);
    explicit_bzero(text, sizeof(text));
    return PAM_SUCCESS;
}
