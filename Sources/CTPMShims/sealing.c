/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "authorization.h"
#include "worker.h"

#include <string.h>

static const TPM2B_DATA no_data = {0};
static const TPML_PCR_SELECTION no_registers = {0};

static TPM2B_PUBLIC sealed_template(bool is_authorized) {
    TPM2B_PUBLIC template = {
        .publicArea = {
            .type = TPM2_ALG_KEYEDHASH,
            .nameAlg = TPM2_ALG_SHA256,
            .objectAttributes = TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT,
            .parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_NULL,
        },
    };
    if (is_authorized) {
        template.publicArea.authPolicy.size = KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT;
        keychain_tpm_policy_digest(template.publicArea.authPolicy.buffer);
    } else {
        template.publicArea.objectAttributes |= TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_NODA;
    }
    return template;
}

/* Both parts as the chip encodes them. What could not be opened again is not given out. */
static bool store(
    struct tpm_connection *connection, const TPM2B_PUBLIC *public_area, const TPM2B_PRIVATE *private_area, bool is_authorized,
    keychain_tpm_object *object) {
    const struct tss2_library *tss2 = connection->tss2;
    *object = (keychain_tpm_object){.root_key_name_byte_count = connection->root_key_name.size};
    memcpy(object->root_key_name, connection->root_key_name.name, connection->root_key_name.size);
    TSS2_RC code = tss2->Tss2_MU_TPM2B_PUBLIC_Marshal(
        public_area, object->public_area, sizeof object->public_area, &object->public_area_byte_count);
    if (!tpm_is_done(connection, code, "encode the public part")) return false;
    code = tss2->Tss2_MU_TPM2B_PRIVATE_Marshal(
        private_area, object->private_area, sizeof object->private_area, &object->private_area_byte_count);
    if (!tpm_is_done(connection, code, "encode the private part")) return false;
    bool has_authorization = false;
    if (keychain_tpm_object_is_well_formed(object, &has_authorization) && has_authorization == is_authorized) return true;
    tpm_report(connection->report, KEYCHAIN_TPM_FAILED, 0, "the TPM sealed something else than was asked for");
    return false;
}

void tpm_overwrite(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session) {
    const struct tss2_library *tss2 = connection->tss2;
    /* Each as long as it can be. */
    const TPM2B_AUTH zeros = {.size = sizeof zeros.buffer};
    const TPM2B_SENSITIVE_CREATE sensitive = {
        .sensitive = {.userAuth.size = sizeof zeros.buffer, .data.size = sizeof sensitive.sensitive.data.buffer},
    };
    const TPM2B_PUBLIC template = sealed_template(true);
    connection->gate.is_shut = true;
    if (loaded != ESYS_TR_NONE) {
        TPM2B_SENSITIVE_DATA *data = NULL;
        tss2->Esys_TR_SetAuth(connection->esys, loaded, &zeros);
        if (session != ESYS_TR_NONE) {
            tss2->Esys_Unseal(connection->esys, loaded, session, ESYS_TR_NONE, ESYS_TR_NONE, &data);
        }
        tss2->Esys_Free(data);
    }
    TPM2B_PUBLIC *public_area = NULL;
    TPM2B_PRIVATE *private_area = NULL;
    tss2->Esys_Create(
        connection->esys, connection->root_key, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive, &template, &no_data,
        &no_registers, &private_area, &public_area, NULL, NULL, NULL);
    tss2->Esys_Free(public_area);
    tss2->Esys_Free(private_area);
    connection->gate.is_shut = false;
}

bool tpm_seal(
    struct tpm_connection *connection, const uint8_t *secret, size_t byte_count, const uint8_t *authorization,
    keychain_tpm_object *object) {
    const struct tss2_library *tss2 = connection->tss2;
    ESYS_TR session = ESYS_TR_NONE;
    if (!tpm_session_start(connection, connection->root_key, TPM2_SE_HMAC, &session)) return false;
    TPM2B_SENSITIVE_CREATE sensitive = {0};
    if (authorization) tpm_set_authorization(&sensitive.sensitive.userAuth, authorization);
    sensitive.sensitive.data.size = (UINT16)byte_count;
    memcpy(sensitive.sensitive.data.buffer, secret, byte_count);
    const TPM2B_PUBLIC template = sealed_template(authorization != NULL);
    TPM2B_PUBLIC *public_area = NULL;
    TPM2B_PRIVATE *private_area = NULL;
    TSS2_RC code = tss2->Esys_Create(
        connection->esys, connection->root_key, session, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive, &template, &no_data, &no_registers,
        &private_area, &public_area, NULL, NULL, NULL);
    explicit_bzero(&sensitive, sizeof sensitive);
    tpm_overwrite(connection, ESYS_TR_NONE, session);
    tpm_flush(connection, &session);
    bool is_done = tpm_is_done_as_owner(connection, code, "Create")
        && store(connection, public_area, private_area, authorization != NULL, object);
    tss2->Esys_Free(public_area);
    tss2->Esys_Free(private_area);
    return is_done;
}

#endif
