/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#ifdef KEYCHAIN_TPM

#include <string.h>
#include <tss2/tss2_common.h>

/* Any number that a module of tpm2-tss does not use for its own. */
#define MAGIC UINT64_C(0x6b6579636861696e)

/* TPM_ST_NO_SESSIONS, a size of 10 bytes, TPM_RC_FAILURE. */
static const uint8_t failure[] = {0x80, 0x01, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x01};

static struct tpm_tcti_filter *gate_of(TSS2_TCTI_CONTEXT *context) { return (struct tpm_tcti_filter *)context; }

static TSS2_RC transmit(TSS2_TCTI_CONTEXT *context, size_t size, const uint8_t *command) {
    return gate_of(context)->is_shut ? TSS2_RC_SUCCESS : Tss2_Tcti_Transmit(gate_of(context)->chip, size, command);
}

static TSS2_RC receive(TSS2_TCTI_CONTEXT *context, size_t *size, uint8_t *response, int32_t timeout) {
    if (!gate_of(context)->is_shut) return Tss2_Tcti_Receive(gate_of(context)->chip, size, response, timeout);
    if (response && *size < sizeof failure) return TSS2_TCTI_RC_INSUFFICIENT_BUFFER;
    if (response) memcpy(response, failure, sizeof failure);
    *size = sizeof failure;
    return TSS2_RC_SUCCESS;
}

static TSS2_RC cancel(TSS2_TCTI_CONTEXT *context) { return Tss2_Tcti_Cancel(gate_of(context)->chip); }

static TSS2_RC get_poll_handles(TSS2_TCTI_CONTEXT *context, TSS2_TCTI_POLL_HANDLE *handles, size_t *count) {
    return Tss2_Tcti_GetPollHandles(gate_of(context)->chip, handles, count);
}

static TSS2_RC set_locality(TSS2_TCTI_CONTEXT *context, uint8_t locality) {
    return Tss2_Tcti_SetLocality(gate_of(context)->chip, locality);
}

TSS2_TCTI_CONTEXT *tpm_tcti_filter_wrap(struct tpm_tcti_filter *gate, TSS2_TCTI_CONTEXT *chip) {
    /* Nothing to finalize: the chip's connection is closed by whoever opened it. */
    *gate = (struct tpm_tcti_filter){
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
    return (TSS2_TCTI_CONTEXT *)gate;
}

#endif
