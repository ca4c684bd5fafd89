/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEYCHAIN_TPM_AUTHORIZATION_H
#define KEYCHAIN_TPM_AUTHORIZATION_H
#ifdef KEYCHAIN_TPM

#include "CTPMShims.h"
#include "tss2_library.h"

#include <string.h>

/* The chip drops zeros at the end of an authorization, and tpm2-tss does not: so they are dropped before either sees them. */
static inline void tpm_set_authorization(TPM2B_AUTH *value, const uint8_t *authorization) {
    UINT16 byte_count = KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT;
    while (byte_count > 0 && authorization[byte_count - 1] == 0) byte_count--;
    value->size = byte_count;
    memcpy(value->buffer, authorization, byte_count);
}

#endif
#endif
