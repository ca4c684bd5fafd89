/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

#include <string.h>

/* Where every system that shares the chip keeps the storage root key: TCG TPM v2.0 Provisioning Guidance, section 7.8. */
#define ROOT_KEY_HANDLE 0x81000001

/* Template L-2 of the TCG EK Credential Profile with the changes that the guidance makes for storage root keys. The chip derives the
   key from its seed and this, so that every system that makes it makes the same. */
static const TPM2B_PUBLIC root_key_template = {
    .publicArea = {
        .type = TPM2_ALG_ECC,
        .nameAlg = TPM2_ALG_SHA256,
        .objectAttributes = TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_SENSITIVEDATAORIGIN
                            | TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_NODA | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT,
        .parameters.eccDetail = {
            .symmetric = {.algorithm = TPM2_ALG_AES, .keyBits.aes = 128, .mode.aes = TPM2_ALG_CFB},
            .scheme.scheme = TPM2_ALG_NULL,
            .curveID = TPM2_ECC_NIST_P256,
            .kdf.scheme = TPM2_ALG_NULL,
        },
        .unique.ecc = {.x.size = 32, .y.size = 32},
    },
};

/* Whether a key can be the parent of what we seal, in a chip that it never leaves, without a password. */
static bool is_storage_key(const TPMT_PUBLIC *key) {
    TPMA_OBJECT needed =
        TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT | TPMA_OBJECT_USERWITHAUTH;
    if ((key->objectAttributes & needed) != needed || key->objectAttributes & TPMA_OBJECT_SIGN_ENCRYPT) return false;
    return key->type == TPM2_ALG_ECC || key->type == TPM2_ALG_RSA;
}

static bool make(struct tpm_connection *connection) {
    const struct tss2_library *tss2 = connection->tss2;
    const TPM2B_SENSITIVE_CREATE nothing_sensitive = {0};
    const TPM2B_DATA no_data = {0};
    const TPML_PCR_SELECTION no_registers = {0};
    ESYS_TR made = ESYS_TR_NONE, persistent = ESYS_TR_NONE;
    TSS2_RC code = tss2->Esys_CreatePrimary(
        connection->esys, ESYS_TR_RH_OWNER, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &nothing_sensitive, &root_key_template,
        &no_data, &no_registers, &made, NULL, NULL, NULL, NULL);
    if (!tpm_is_done_as_owner(connection, code, "CreatePrimary")) return false;
    code = tss2->Esys_EvictControl(
        connection->esys, ESYS_TR_RH_OWNER, made, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, ROOT_KEY_HANDLE, &persistent);
    tpm_flush(connection, &made);
    if (persistent != ESYS_TR_NONE) tss2->Esys_TR_Close(connection->esys, &persistent);
    /* Another process was faster: what it has put there is used. */
    return code == TPM2_RC_NV_DEFINED || tpm_is_done_as_owner(connection, code, "EvictControl");
}

static TSS2_RC look(struct tpm_connection *connection) {
    return connection->tss2->Esys_TR_FromTPMPublic(
        connection->esys, ROOT_KEY_HANDLE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &connection->root_key);
}

static bool check(struct tpm_connection *connection) {
    const struct tss2_library *tss2 = connection->tss2;
    TPM2B_PUBLIC *key = NULL;
    TSS2_RC code = tss2->Esys_ReadPublic(
        connection->esys, connection->root_key, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &key, NULL, NULL);
    if (!tpm_is_done(connection, code, "ReadPublic")) return false;
    bool is_usable = is_storage_key(&key->publicArea);
    tss2->Esys_Free(key);
    if (!is_usable) {
        tpm_report(connection->report, KEYCHAIN_TPM_FAILED, 0, "the TPM has something at 0x%X that is no storage key", ROOT_KEY_HANDLE);
        return false;
    }
    TPM2B_NAME *name = NULL;
    if (!tpm_is_done(connection, tss2->Esys_TR_GetName(connection->esys, connection->root_key, &name), "GetName")) return false;
    connection->root_key_name = *name;
    tss2->Esys_Free(name);
    if (connection->root_key_name.size > 0 && connection->root_key_name.size <= KEYCHAIN_TPM_LARGEST_NAME) return true;
    tpm_report(
        connection->report, KEYCHAIN_TPM_FAILED, 0, "the TPM's storage root key has a name of %u bytes", connection->root_key_name.size);
    return false;
}

bool tpm_root_key_find(struct tpm_connection *connection, bool makes_root_key) {
    TSS2_RC code = look(connection);
    if (keychain_tpm_classify(code) == KEYCHAIN_TPM_MISSING) {
        if (!makes_root_key) {
            tpm_report(connection->report, KEYCHAIN_TPM_FOREIGN_OBJECT, 0, "the TPM has no storage root key");
            return false;
        }
        if (!make(connection)) return false;
        code = look(connection);
    }
    return tpm_is_done(connection, code, "FromTPMPublic") && check(connection);
}

#endif
