/* SPDX-License-Identifier: Apache-2.0 */
/* Stores a secret and reads it back: cc store_secret.c $(pkg-config --cflags --libs valet) -o store_secret */
#include <stdio.h>
#include <valet.h>

int main(void) {
    valet *vault = NULL;
    char *secret = NULL;
    valet_status status = valet_create("Druidia", valet_nul_terminated, valet_accessibility_when_unlocked, &vault);
    if (status == valet_success) status = valet_set_string(vault, "Skroob", valet_nul_terminated, "12345", valet_nul_terminated);
    if (status == valet_success) status = valet_get_string(vault, "Skroob", valet_nul_terminated, &secret, NULL);
    if (status == valet_success) puts(secret);
    else fprintf(stderr, "%s\n", valet_failure_reason() ? valet_failure_reason() : valet_status_text(status));
    valet_buffer_free(secret);
    valet_free(vault);
    return status == valet_success ? 0 : 1;
}
