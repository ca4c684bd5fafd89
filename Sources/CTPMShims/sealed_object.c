/* SPDX-License-Identifier: Apache-2.0 */
/* The form of sealed objects, byte for byte. What comes from a file is compared with it before tpm2-tss parses it. */
#include "CTPMShims.h"

#include <string.h>

/* A TPM2B_PUBLIC in the chip's encoding: sizes in two bytes, the higher first. */
static const uint8_t authorized_start[] = {
    0x00, 0x4e,             /* what follows: 78 bytes */
    0x00, 0x08,             /* TPM_ALG_KEYEDHASH */
    0x00, 0x0b,             /* TPM_ALG_SHA256 */
    0x00, 0x00, 0x00, 0x12, /* fixedTPM, fixedParent: wrong authorizations are counted, and nothing but the policy opens it */
    0x00, 0x20,             /* the policy: 32 bytes */
    0x8f, 0xcd, 0x21, 0x69, 0xab, 0x92, 0x69, 0x4e, 0x0c, 0x63, 0x3f, 0x1a, 0xb7, 0x72, 0x84, 0x2b,
    0x82, 0x41, 0xbb, 0xc2, 0x02, 0x88, 0x98, 0x1f, 0xc7, 0xac, 0x1e, 0xdd, 0xc1, 0xfd, 0xdb, 0x0e,
    0x00, 0x10,             /* TPM_ALG_NULL */
    0x00, 0x20,             /* 32 bytes follow that are this object's own */
};
static const uint8_t open_start[] = {
    0x00, 0x2e,             /* what follows: 46 bytes */
    0x00, 0x08,             /* TPM_ALG_KEYEDHASH */
    0x00, 0x0b,             /* TPM_ALG_SHA256 */
    0x00, 0x00, 0x04, 0x52, /* fixedTPM, fixedParent, userWithAuth, noDA */
    0x00, 0x00,             /* no policy */
    0x00, 0x10,             /* TPM_ALG_NULL */
    0x00, 0x20,             /* 32 bytes follow that are this object's own */
};
#define POLICY_OFFSET 12
#define UNIQUE_BYTE_COUNT 32

/* An integrity value of 32 bytes and an initialization vector of 16, each with its size, and something encrypted. */
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
