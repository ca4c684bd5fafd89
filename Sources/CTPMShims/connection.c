/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

#include <errno.h>
#include <string.h>
#include <tss2/tss2_common.h>
#include <unistd.h>

/* Any number that no module of tpm2-tss uses. */
#define MAGIC UINT64_C(0x6b6579636861696e)

/* TPM_ST_NO_SESSIONS, a size of 10 bytes, TPM_RC_FAILURE. */
static const uint8_t failure[] = {0x80, 0x01, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x01};

static struct tpm_tcti_filter *filter_of(TSS2_TCTI_CONTEXT *context) { return (struct tpm_tcti_filter *)context; }

static TSS2_RC transmit(TSS2_TCTI_CONTEXT *context, size_t size, const uint8_t *command) {
    return filter_of(context)->drops_commands ? TSS2_RC_SUCCESS : Tss2_Tcti_Transmit(filter_of(context)->chip, size, command);
}

static TSS2_RC receive(TSS2_TCTI_CONTEXT *context, size_t *size, uint8_t *response, int32_t timeout) {
    if (!filter_of(context)->drops_commands) return Tss2_Tcti_Receive(filter_of(context)->chip, size, response, timeout);
    if (response && *size < sizeof failure) return TSS2_TCTI_RC_INSUFFICIENT_BUFFER;
    if (response) memcpy(response, failure, sizeof failure);
    *size = sizeof failure;
    return TSS2_RC_SUCCESS;
}

static TSS2_RC cancel(TSS2_TCTI_CONTEXT *context) { return Tss2_Tcti_Cancel(filter_of(context)->chip); }

static TSS2_RC get_poll_handles(TSS2_TCTI_CONTEXT *context, TSS2_TCTI_POLL_HANDLE *handles, size_t *count) {
    return Tss2_Tcti_GetPollHandles(filter_of(context)->chip, handles, count);
}

static TSS2_RC set_locality(TSS2_TCTI_CONTEXT *context, uint8_t locality) {
    return Tss2_Tcti_SetLocality(filter_of(context)->chip, locality);
}

TSS2_TCTI_CONTEXT *tpm_tcti_filter_wrap(struct tpm_tcti_filter *filter, TSS2_TCTI_CONTEXT *chip) {
    /* No finalize function: tpm_connection_close closes the TPM's own context. */
    *filter = (struct tpm_tcti_filter){
        .common = {
            .magic = MAGIC,
            .version = 1,
            .transmit = transmit,
            .receive = receive,
            .cancel = cancel,
            .getPollHandles = get_poll_handles,
            .setLocality = set_locality,
        },
        .chip = chip,
    };
    return (TSS2_TCTI_CONTEXT *)filter;
}

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

/* Why there is no connection. For a device tpm2-tss reports only that it failed; usually the user may not open it. */
static const char *reason(const struct tss2_library *tss2, const char *tcti, TSS2_RC code) {
    static const char device[] = "device:";
    size_t length = sizeof device - 1;
    bool is_inaccessible = strncmp(tcti, device, length) == 0 && access(tcti + length, R_OK | W_OK) != 0;
    return is_inaccessible ? strerror(errno) : tss2->Tss2_RC_Decode(code);
}

bool tpm_connection_open(struct tpm_connection *connection, const char *tcti, keychain_tpm_report *report) {
    *connection = (struct tpm_connection){.root_key = ESYS_TR_NONE, .report = report};
    char text[sizeof report->text] = "";
    connection->tss2 = tss2_library_open(text, sizeof text);
    if (!connection->tss2) {
        tpm_report(report, KEYCHAIN_TPM_UNAVAILABLE, 0, "%s", text);
        return false;
    }
    /* Without a module's name, and with a NULL, tpm2-tss would use any TPM that it finds. */
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
    code = connection->tss2->Esys_Initialize(&connection->esys, tpm_tcti_filter_wrap(&connection->filter, connection->tcti), NULL);
    if (!tpm_is_done(connection, code, "Initialize")) return false;
    code = connection->tss2->Esys_Startup(connection->esys, TPM2_SU_CLEAR);
    /* TPM2_RC_INITIALIZE: it is already started, usually by the firmware. */
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
    /* Retried while the TPM is busy. A TPM that is gone holds nothing. */
    for (int tries = 0; tries < 8; tries++) {
        TSS2_RC code = connection->tss2->Esys_FlushContext(connection->esys, *loaded);
        if (keychain_tpm_classify(code) != KEYCHAIN_TPM_BUSY) break;
    }
    *loaded = ESYS_TR_NONE;
}

static const TPMT_SYM_DEF session_encryption = {.algorithm = TPM2_ALG_AES, .keyBits.aes = 128, .mode.aes = TPM2_ALG_CFB};

bool tpm_session_start(struct tpm_connection *connection, ESYS_TR bound, TPM2_SE type, ESYS_TR *session) {
    const struct tss2_library *tss2 = connection->tss2;
    TSS2_RC code = tss2->Esys_StartAuthSession(
        connection->esys, connection->root_key, bound, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, NULL, type, &session_encryption,
        TPM2_ALG_SHA256, session);
    if (!tpm_is_done(connection, code, "StartAuthSession")) {
        *session = ESYS_TR_NONE;
        return false;
    }
    /* CONTINUESESSION: the session lives until it is flushed, even if a command that uses it fails. */
    TPMA_SESSION attributes = TPMA_SESSION_DECRYPT | TPMA_SESSION_ENCRYPT | TPMA_SESSION_CONTINUESESSION;
    code = tss2->Esys_TRSess_SetAttributes(connection->esys, *session, attributes, attributes);
    if (tpm_is_done(connection, code, "SetAttributes")) return true;
    tpm_flush(connection, session);
    return false;
}

bool tpm_compute_policy_digest(struct tpm_connection *connection, uint8_t *digest) {
    const struct tss2_library *tss2 = connection->tss2;
    ESYS_TR session = ESYS_TR_NONE;
    TPM2B_DIGEST *computed = NULL;
    bool is_done = tpm_session_start(connection, ESYS_TR_NONE, TPM2_SE_TRIAL, &session)
        && tpm_is_done(
            connection, tss2->Esys_PolicyAuthValue(connection->esys, session, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE),
            "PolicyAuthValue")
        && tpm_is_done(
            connection, tss2->Esys_PolicyGetDigest(connection->esys, session, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &computed),
            "PolicyGetDigest");
    tpm_flush(connection, &session);
    if (is_done) memcpy(digest, computed->buffer, KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT);
    tss2->Esys_Free(computed);
    return is_done;
}

#endif
