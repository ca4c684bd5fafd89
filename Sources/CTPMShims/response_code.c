/* SPDX-License-Identifier: Apache-2.0 */
/* What response codes mean. Numbers are those of the TPM 2.0 Library Specification, part 2, section 6.6. */
#include "CTPMShims.h"

/* Who gave the code stands in its third byte. */
#define LAYER(code) ((code) >> 16 & 0xff)
#define LAYER_TPM 0
#define LAYER_TCTI 10
/* A resource manager that answers in the chip's place, with the chip's codes: the kernel's, and that of user space. */
#define LAYER_RESOURCE_MANAGER 11
#define LAYER_RESOURCE_MANAGER_TPM 12

/* With this bit set six bits are the number, and others name a parameter, a handle or a session. */
#define FORMAT_ONE 0x80
#define FORMAT_ONE_NUMBER(code) ((code) & 0x3f)
/* Without it seven bits are the number, and others tell errors from warnings. */
#define FORMAT_ZERO_NUMBER(code) ((code) & 0x97f)

static keychain_tpm_outcome classify_format_one(uint32_t number) {
    switch (number) {
    case 0x0b: return KEYCHAIN_TPM_MISSING;             /* HANDLE */
    case 0x0e: return KEYCHAIN_TPM_WRONG_AUTHORIZATION; /* AUTH_FAIL */
    case 0x22: return KEYCHAIN_TPM_WRONG_AUTHORIZATION; /* BAD_AUTH */
    case 0x1f: return KEYCHAIN_TPM_FOREIGN_OBJECT;      /* INTEGRITY */
    default: return KEYCHAIN_TPM_FAILED;
    }
}

static keychain_tpm_outcome classify_format_zero(uint32_t number) {
    switch (number) {
    case 0x921: return KEYCHAIN_TPM_LOCKED_OUT; /* LOCKOUT */
    case 0x902:                                 /* OBJECT_MEMORY */
    case 0x903:                                 /* SESSION_MEMORY */
    case 0x904:                                 /* MEMORY */
    case 0x905:                                 /* SESSION_HANDLES */
    case 0x908:                                 /* YIELDED */
    case 0x909:                                 /* CANCELED */
    case 0x90a:                                 /* TESTING */
    case 0x920:                                 /* NV_RATE */
    case 0x922:                                 /* RETRY */
    case 0x923: return KEYCHAIN_TPM_BUSY;       /* NV_UNAVAILABLE */
    default: return KEYCHAIN_TPM_FAILED;
    }
}

keychain_tpm_outcome keychain_tpm_classify(uint32_t code) {
    if (code == 0) return KEYCHAIN_TPM_DONE;
    switch (LAYER(code)) {
    case LAYER_TCTI: return KEYCHAIN_TPM_UNAVAILABLE;
    case LAYER_TPM:
    case LAYER_RESOURCE_MANAGER:
    case LAYER_RESOURCE_MANAGER_TPM:
        return code & FORMAT_ONE ? classify_format_one(FORMAT_ONE_NUMBER(code)) : classify_format_zero(FORMAT_ZERO_NUMBER(code));
    default: return KEYCHAIN_TPM_FAILED;
    }
}
