/* SPDX-License-Identifier: Apache-2.0 */
/* What a TPM says of itself: its storage root key and its state. */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

#include <string.h>

/* The storage root key's handle, shared by all systems that use the TPM: TCG TPM v2.0 Provisioning Guidance, section 7.8. */
#define ROOT_KEY_HANDLE 0x81000001

/* Template L-2 of the TCG EK Credential Profile with the guidance's changes for storage root keys. The TPM derives the key from its
   seed and this template, so every system that creates it gets the same key. */
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

/* Whether a key can be the parent of sealed objects: it never leaves the TPM and has no password. */
static bool is_storage_key(const TPMT_PUBLIC *key) {
    TPMA_OBJECT needed =
        TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT | TPMA_OBJECT_USERWITHAUTH;
    if ((key->objectAttributes & needed) != needed || key->objectAttributes & TPMA_OBJECT_SIGN_ENCRYPT) return false;
    return key->type == TPM2_ALG_ECC || key->type == TPM2_ALG_RSA;
}

static bool create_root_key(struct tpm_connection *connection) {
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
    /* TPM2_RC_NV_DEFINED: another process was faster; its key is used. */
    return code == TPM2_RC_NV_DEFINED || tpm_is_done_as_owner(connection, code, "EvictControl");
}

static TSS2_RC find_root_key(struct tpm_connection *connection) {
    return connection->tss2->Esys_TR_FromTPMPublic(
        connection->esys, ROOT_KEY_HANDLE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &connection->root_key);
}

static bool check_root_key(struct tpm_connection *connection) {
    const struct tss2_library *tss2 = connection->tss2;
    TPM2B_PUBLIC *key = NULL;
    TSS2_RC code = tss2->Esys_ReadPublic(
        connection->esys, connection->root_key, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &key, NULL, NULL);
    if (!tpm_is_done(connection, code, "ReadPublic")) return false;
    bool is_usable = is_storage_key(&key->publicArea);
    tss2->Esys_Free(key);
    if (!is_usable) {
        tpm_report(connection->report, KEYCHAIN_TPM_FAILED, 0, "the object at 0x%X in the TPM is not a storage key", ROOT_KEY_HANDLE);
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
    TSS2_RC code = find_root_key(connection);
    if (keychain_tpm_classify(code) == KEYCHAIN_TPM_MISSING) {
        if (!makes_root_key) {
            tpm_report(connection->report, KEYCHAIN_TPM_FOREIGN_OBJECT, 0, "the TPM has no storage root key");
            return false;
        }
        if (!create_root_key(connection)) return false;
        code = find_root_key(connection);
    }
    return tpm_is_done(connection, code, "FromTPMPublic") && check_root_key(connection);
}

static void set_property(keychain_tpm_state *state, const TPMS_TAGGED_PROPERTY *property) {
    uint32_t value = property->value;
    switch (property->property) {
    case TPM2_PT_MANUFACTURER: state->manufacturer = value; break;
    case TPM2_PT_VENDOR_STRING_1:
    case TPM2_PT_VENDOR_STRING_2:
    case TPM2_PT_VENDOR_STRING_3:
    case TPM2_PT_VENDOR_STRING_4: state->vendor_string[property->property - TPM2_PT_VENDOR_STRING_1] = value; break;
    case TPM2_PT_FIRMWARE_VERSION_1: state->firmware_version[0] = value; break;
    case TPM2_PT_FIRMWARE_VERSION_2: state->firmware_version[1] = value; break;
    case TPM2_PT_PERMANENT:
        state->is_locked_out = value & TPMA_PERMANENT_INLOCKOUT;
        state->is_lockout_authorization_set = value & TPMA_PERMANENT_LOCKOUTAUTHSET;
        break;
    case TPM2_PT_LOCKOUT_COUNTER: state->lockout_counter = value; break;
    case TPM2_PT_MAX_AUTH_FAIL: state->largest_lockout_counter = value; break;
    case TPM2_PT_LOCKOUT_INTERVAL: state->lockout_interval_seconds = value; break;
    default: break;
    }
}

/* A TPM omits properties that it does not have and may return fewer than requested, so each is identified by its number. */
static bool read(struct tpm_connection *connection, TPM2_PT first, TPM2_PT last, keychain_tpm_state *state) {
    const struct tss2_library *tss2 = connection->tss2;
    while (first <= last) {
        TPMI_YES_NO has_more = TPM2_NO;
        TPMS_CAPABILITY_DATA *capability = NULL;
        TSS2_RC code = tss2->Esys_GetCapability(
            connection->esys, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, TPM2_CAP_TPM_PROPERTIES, first, last - first + 1, &has_more,
            &capability);
        if (!tpm_is_done(connection, code, "GetCapability")) return false;
        const TPML_TAGGED_TPM_PROPERTY *properties = &capability->data.tpmProperties;
        uint32_t next = first;
        if (capability->capability == TPM2_CAP_TPM_PROPERTIES && properties->count <= TPM2_MAX_TPM_PROPERTIES) {
            for (uint32_t index = 0; index < properties->count; index++) {
                set_property(state, &properties->tpmProperty[index]);
                if (properties->tpmProperty[index].property >= next) next = properties->tpmProperty[index].property + 1;
            }
        }
        tss2->Esys_Free(capability);
        if (!has_more || next == first) return true;
        first = next;
    }
    return true;
}

bool tpm_read_state(struct tpm_connection *connection, keychain_tpm_state *state) {
    *state = (keychain_tpm_state){0};
    return read(connection, TPM2_PT_MANUFACTURER, TPM2_PT_FIRMWARE_VERSION_2, state)
        && read(connection, TPM2_PT_PERMANENT, TPM2_PT_PERMANENT, state)
        && read(connection, TPM2_PT_LOCKOUT_COUNTER, TPM2_PT_LOCKOUT_INTERVAL, state);
}

#endif
