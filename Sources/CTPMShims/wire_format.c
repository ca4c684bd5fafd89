/* SPDX-License-Identifier: Apache-2.0 */
/* The TPM's encodings that are read here: response codes, and sealed objects byte for byte. Built without the trait TPM too. */
#include "CTPMShims.h"

#include <string.h>

/* Response codes: TPM 2.0 Library Specification, part 2, section 6.6. */

/* The third byte is the layer that produced the code. */
#define LAYER(code) ((code) >> 16 & 0xff)
#define LAYER_TPM 0
#define LAYER_TCTI 10
/* A resource manager answering for the TPM with the TPM's codes: the kernel's, and the one in user space. */
#define LAYER_RESOURCE_MANAGER 11
#define LAYER_RESOURCE_MANAGER_TPM 12

/* Format one: six bits are the number; the others identify a parameter, a handle, or a session. */
#define FORMAT_ONE 0x80
#define FORMAT_ONE_NUMBER(code) ((code) & 0x3f)
/* Format zero: seven bits are the number; the others distinguish errors from warnings. */
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

/* Sealed objects. What comes from a file is compared with these bytes before tpm2-tss parses it. */

/* A TPM2B_PUBLIC as the TPM encodes it: sizes in two bytes, big-endian. */
static const uint8_t authorized_start[] = {
    0x00, 0x4e,             /* 78 bytes follow */
    0x00, 0x08,             /* TPM_ALG_KEYEDHASH */
    0x00, 0x0b,             /* TPM_ALG_SHA256 */
    0x00, 0x00, 0x00, 0x12, /* fixedTPM, fixedParent: wrong authorizations are counted, and only the policy unseals it */
    0x00, 0x20,             /* the policy: 32 bytes */
    0x8f, 0xcd, 0x21, 0x69, 0xab, 0x92, 0x69, 0x4e, 0x0c, 0x63, 0x3f, 0x1a, 0xb7, 0x72, 0x84, 0x2b,
    0x82, 0x41, 0xbb, 0xc2, 0x02, 0x88, 0x98, 0x1f, 0xc7, 0xac, 0x1e, 0xdd, 0xc1, 0xfd, 0xdb, 0x0e,
    0x00, 0x10,             /* TPM_ALG_NULL */
    0x00, 0x20,             /* 32 bytes follow that are this object's own */
};
static const uint8_t open_start[] = {
    0x00, 0x2e,             /* 46 bytes follow */
    0x00, 0x08,             /* TPM_ALG_KEYEDHASH */
    0x00, 0x0b,             /* TPM_ALG_SHA256 */
    0x00, 0x00, 0x04, 0x52, /* fixedTPM, fixedParent, userWithAuth, noDA */
    0x00, 0x00,             /* no policy */
    0x00, 0x10,             /* TPM_ALG_NULL */
    0x00, 0x20,             /* 32 bytes follow that are this object's own */
};
#define POLICY_OFFSET 12
#define UNIQUE_BYTE_COUNT 32

/* An integrity value of 32 bytes and an initialization vector of 16, each with its size, and at least one encrypted byte. */
#define SMALLEST_PRIVATE_AREA (2 + 2 + 32 + 2 + 16 + 1)

static bool starts_with(const keychain_tpm_object *object, const uint8_t *start, size_t byte_count) {
    return object->public_area_byte_count == byte_count + UNIQUE_BYTE_COUNT && memcmp(object->public_area, start, byte_count) == 0;
}

bool keychain_tpm_object_is_well_formed(const keychain_tpm_object *object, bool *is_authorized) {
    size_t byte_count = object->private_area_byte_count;
    if (byte_count < SMALLEST_PRIVATE_AREA || byte_count > KEYCHAIN_TPM_LARGEST_PRIVATE_AREA) return false;
    if ((size_t)(object->private_area[0] << 8 | object->private_area[1]) != byte_count - 2) return false;
    *is_authorized = starts_with(object, authorized_start, sizeof authorized_start);
    return *is_authorized || starts_with(object, open_start, sizeof open_start);
}

void keychain_tpm_policy_digest(uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT]) {
    memcpy(digest, authorized_start + POLICY_OFFSET, KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT);
}
