/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

#include <string.h>

/* The TPM strips trailing zeros of an authorization and tpm2-tss does not, so they are stripped here. */
static void set_authorization(TPM2B_AUTH *value, const uint8_t *authorization) {
    UINT16 byte_count = KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT;
    while (byte_count > 0 && authorization[byte_count - 1] == 0) byte_count--;
    value->size = byte_count;
    memcpy(value->buffer, authorization, byte_count);
}

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

/* Encodes both parts as the TPM does, and verifies that keychain_tpm_unseal will accept the result. */
static bool encode(
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
    tpm_report(connection->report, KEYCHAIN_TPM_FAILED, 0, "the TPM returned an object other than the one requested");
    return false;
}

void tpm_overwrite(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session) {
    const struct tss2_library *tss2 = connection->tss2;
    /* Each has the largest size, to cover whatever was there. */
    const TPM2B_AUTH zeros = {.size = sizeof zeros.buffer};
    const TPM2B_SENSITIVE_CREATE sensitive = {
        .sensitive = {.userAuth.size = sizeof zeros.buffer, .data.size = sizeof sensitive.sensitive.data.buffer},
    };
    const TPM2B_PUBLIC template = sealed_template(true);
    connection->filter.drops_commands = true;
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
    connection->filter.drops_commands = false;
}

bool tpm_seal(
    struct tpm_connection *connection, const uint8_t *secret, size_t byte_count, const uint8_t *authorization,
    keychain_tpm_object *object) {
    const struct tss2_library *tss2 = connection->tss2;
    ESYS_TR session = ESYS_TR_NONE;
    if (!tpm_session_start(connection, connection->root_key, TPM2_SE_HMAC, &session)) return false;
    TPM2B_SENSITIVE_CREATE sensitive = {0};
    if (authorization) set_authorization(&sensitive.sensitive.userAuth, authorization);
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
        && encode(connection, public_area, private_area, authorization != NULL, object);
    tss2->Esys_Free(public_area);
    tss2->Esys_Free(private_area);
    return is_done;
}

static bool load(struct tpm_connection *connection, const keychain_tpm_object *object, ESYS_TR *loaded) {
    const struct tss2_library *tss2 = connection->tss2;
    TPM2B_PUBLIC public_area = {0};
    TPM2B_PRIVATE private_area = {0};
    size_t offset = 0;
    TSS2_RC code = tss2->Tss2_MU_TPM2B_PUBLIC_Unmarshal(object->public_area, object->public_area_byte_count, &offset, &public_area);
    if (!tpm_is_done(connection, code, "decode the public part")) return false;
    offset = 0;
    code = tss2->Tss2_MU_TPM2B_PRIVATE_Unmarshal(object->private_area, object->private_area_byte_count, &offset, &private_area);
    if (!tpm_is_done(connection, code, "decode the private part")) return false;
    code = tss2->Esys_Load(
        connection->esys, connection->root_key, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &private_area, &public_area, loaded);
    if (tpm_is_done_as_owner(connection, code, "Load")) return true;
    *loaded = ESYS_TR_NONE;
    return false;
}

/* With an authorization: a policy session that satisfies the object's policy. Without: an HMAC session over the empty authorization.

   The policy session is not bound to the object. The authorization is part of the session's HMAC key for each command, but tpm2-tss
   (unlike the TPM) omits it if the session is bound to the object that it unseals. */
static bool open_session(struct tpm_connection *connection, ESYS_TR loaded, const uint8_t *authorization, ESYS_TR *session) {
    const struct tss2_library *tss2 = connection->tss2;
    if (!authorization) return tpm_session_start(connection, loaded, TPM2_SE_HMAC, session);
    TPM2B_AUTH value = {0};
    set_authorization(&value, authorization);
    TSS2_RC code = tss2->Esys_TR_SetAuth(connection->esys, loaded, &value);
    explicit_bzero(&value, sizeof value);
    if (!tpm_is_done(connection, code, "SetAuth")) return false;
    if (!tpm_session_start(connection, connection->root_key, TPM2_SE_POLICY, session)) return false;
    code = tss2->Esys_PolicyAuthValue(connection->esys, *session, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE);
    return tpm_is_done(connection, code, "PolicyAuthValue");
}

static bool unseal_loaded(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session, uint8_t *secret, size_t *byte_count) {
    const struct tss2_library *tss2 = connection->tss2;
    TPM2B_SENSITIVE_DATA *data = NULL;
    TSS2_RC code = tss2->Esys_Unseal(connection->esys, loaded, session, ESYS_TR_NONE, ESYS_TR_NONE, &data);
    if (!tpm_is_done(connection, code, "Unseal")) return false;
    bool is_done = data->size > 0 && data->size <= KEYCHAIN_TPM_LARGEST_SECRET;
    if (is_done) {
        memcpy(secret, data->buffer, data->size);
        *byte_count = data->size;
    } else {
        tpm_report(connection->report, KEYCHAIN_TPM_FAILED, 0, "the TPM unsealed %u bytes", data->size);
    }
    explicit_bzero(data, sizeof *data);
    tss2->Esys_Free(data);
    return is_done;
}

bool tpm_unseal(
    struct tpm_connection *connection, const keychain_tpm_object *object, const uint8_t *authorization, uint8_t *secret,
    size_t *byte_count) {
    if (object->root_key_name_byte_count != connection->root_key_name.size
        || memcmp(object->root_key_name, connection->root_key_name.name, connection->root_key_name.size) != 0) {
        tpm_report(connection->report, KEYCHAIN_TPM_FOREIGN_OBJECT, 0, "the TPM has another storage root key");
        return false;
    }
    ESYS_TR loaded = ESYS_TR_NONE, session = ESYS_TR_NONE;
    bool is_done = load(connection, object, &loaded) && open_session(connection, loaded, authorization, &session)
        && unseal_loaded(connection, loaded, session, secret, byte_count);
    tpm_overwrite(connection, loaded, session);
    tpm_flush(connection, &session);
    tpm_flush(connection, &loaded);
    return is_done;
}

#endif
