/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include "worker.h"

static void take(keychain_tpm_state *state, const TPMS_TAGGED_PROPERTY *property) {
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

/* A chip leaves out what it does not have and may give fewer than it was asked for, so each is taken by its number. */
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
                take(state, &properties->tpmProperty[index]);
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
