/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool tpm_is_done(struct tpm_connection *connection, TSS2_RC code, const char *step) {
    if (code == TSS2_RC_SUCCESS) return true;
    tpm_report(
        connection->report, keychain_tpm_classify(code), code, "%s: 0x%X, %s", step, code, connection->tss2->Tss2_RC_Decode(code));
    return false;
}

bool tpm_is_done_as_owner(struct tpm_connection *connection, TSS2_RC code, const char *step) {
    bool is_done = tpm_is_done(connection, code, step);
    if (connection->report->outcome == KEYCHAIN_TPM_WRONG_AUTHORIZATION) {
        tpm_report(
            connection->report, KEYCHAIN_TPM_FAILED, code, "%s: 0x%X, the TPM's owner or its storage root key has a password", step, code);
    }
    return is_done;
}

/* Why there is no connection. Of a device tpm2-tss says only that it failed; mostly the user may not open it. */
static const char *reason(const struct tss2_library *tss2, const char *tcti, TSS2_RC code) {
    static const char device[] = "device:";
    size_t length = sizeof device - 1;
    bool is_shut = strncmp(tcti, device, length) == 0 && access(tcti + length, R_OK | W_OK) != 0;
    return is_shut ? strerror(errno) : tss2->Tss2_RC_Decode(code);
}

bool tpm_connection_open(struct tpm_connection *connection, const char *tcti, keychain_tpm_report *report) {
    *connection = (struct tpm_connection){.root_key = ESYS_TR_NONE, .report = report};
    char text[sizeof report->text] = "";
    connection->tss2 = tss2_library_open(text, sizeof text);
    if (!connection->tss2) {
        tpm_report(report, KEYCHAIN_TPM_UNAVAILABLE, 0, "%s", text);
        return false;
    }
    /* Without a module's name tpm2-tss looks for any chip, and a failure here must not become a NULL below for the same reason. */
    if (tcti[0] == '\0' || tcti[0] == ':') {
        tpm_report(report, KEYCHAIN_TPM_UNAVAILABLE, 0, "the TPM's TCTI names no module");
        return false;
    }
    TSS2_RC code = connection->tss2->Tss2_TctiLdr_Initialize(tcti, &connection->tcti);
    if (code != TSS2_RC_SUCCESS || !connection->tcti) {
        connection->tcti = NULL;
        tpm_report(report, KEYCHAIN_TPM_UNAVAILABLE, code, "no TPM at %s: 0x%X, %s", tcti, code, reason(connection->tss2, tcti, code));
        return false;
    }
    code = connection->tss2->Esys_Initialize(&connection->esys, tpm_tcti_filter_wrap(&connection->gate, connection->tcti), NULL);
    if (!tpm_is_done(connection, code, "Initialize")) return false;
    code = connection->tss2->Esys_Startup(connection->esys, TPM2_SU_CLEAR);
    /* Whoever came first, the firmware mostly, has started it. */
    return code == TPM2_RC_INITIALIZE || tpm_is_done(connection, code, "Startup");
}

void tpm_connection_close(struct tpm_connection *connection) {
    if (!connection->tss2) return;
    if (connection->root_key != ESYS_TR_NONE) connection->tss2->Esys_TR_Close(connection->esys, &connection->root_key);
    if (connection->esys) connection->tss2->Esys_Finalize(&connection->esys);
    if (connection->tcti) connection->tss2->Tss2_TctiLdr_Finalize(&connection->tcti);
}

void tpm_flush(struct tpm_connection *connection, ESYS_TR *loaded) {
    if (*loaded == ESYS_TR_NONE) return;
    /* A chip that is busy is asked again; one that is gone holds nothing. */
    for (int tries = 0; tries < 8; tries++) {
        TSS2_RC code = connection->tss2->Esys_FlushContext(connection->esys, *loaded);
        if (keychain_tpm_classify(code) != KEYCHAIN_TPM_BUSY) break;
    }
    *loaded = ESYS_TR_NONE;
}

#endif
