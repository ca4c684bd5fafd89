/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "authorization.h"
#include "worker.h"

#include <string.h>

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

/* With an authorization the session carries the policy that asks for it; without, it proves knowing the empty one.

   The first is not bound to the object: the authorization enters the keys of a policy session with each command, and tpm2-tss leaves
   it out, though the chip does not, once the session is bound to what it opens. */
static bool open_session(struct tpm_connection *connection, ESYS_TR loaded, const uint8_t *authorization, ESYS_TR *session) {
    const struct tss2_library *tss2 = connection->tss2;
    if (!authorization) return tpm_session_start(connection, loaded, TPM2_SE_HMAC, session);
    TPM2B_AUTH value = {0};
    tpm_set_authorization(&value, authorization);
    TSS2_RC code = tss2->Esys_TR_SetAuth(connection->esys, loaded, &value);
    explicit_bzero(&value, sizeof value);
    if (!tpm_is_done(connection, code, "SetAuth")) return false;
    if (!tpm_session_start(connection, connection->root_key, TPM2_SE_POLICY, session)) return false;
    code = tss2->Esys_PolicyAuthValue(connection->esys, *session, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE);
    return tpm_is_done(connection, code, "PolicyAuthValue");
}

static bool take_out(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session, uint8_t *secret, size_t *byte_count) {
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
        && take_out(connection, loaded, session, secret, byte_count);
    tpm_overwrite(connection, loaded, session);
    tpm_flush(connection, &session);
    tpm_flush(connection, &loaded);
    return is_done;
}

#endif
