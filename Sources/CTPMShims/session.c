/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include <string.h>

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
    /* It lives until it is flushed, also when a command that uses it fails. */
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
