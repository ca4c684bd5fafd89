/* SPDX-License-Identifier: Apache-2.0 */
/* A TPM 2.0 over tpm2-tss, whose libraries are opened at the first call. Bytes in, bytes out; no type of tpm2-tss shows here.
   Built without KEYCHAIN_TPM, every function that needs the chip answers KEYCHAIN_TPM_UNAVAILABLE, "not built with TPM". */
#ifndef KEYCHAIN_TPM_SHIMS_H
#define KEYCHAIN_TPM_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYCHAIN_TPM_LARGEST_SECRET 64
#define KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT 32
#define KEYCHAIN_TPM_LARGEST_NAME 66
#define KEYCHAIN_TPM_LARGEST_PUBLIC_AREA 80
#define KEYCHAIN_TPM_LARGEST_PRIVATE_AREA 256
#define KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT 32

/* How a call ended. */
typedef enum {
    KEYCHAIN_TPM_DONE,
    KEYCHAIN_TPM_UNAVAILABLE,
    KEYCHAIN_TPM_WRONG_AUTHORIZATION,
    KEYCHAIN_TPM_LOCKED_OUT,
    KEYCHAIN_TPM_FOREIGN_OBJECT,
    /* No answer in time, or so busy that trying again did not help. */
    KEYCHAIN_TPM_BUSY,
    /* There is no such handle. */
    KEYCHAIN_TPM_MISSING,
    KEYCHAIN_TPM_FAILED,
} keychain_tpm_outcome;

/* What stands behind an outcome, for people. Nothing of it is a secret. */
typedef struct {
    keychain_tpm_outcome outcome;
    /* As the chip or a library below us gave it; 0: neither did. */
    uint32_t response_code;
    /* When locked out: seconds until one counted try is forgiven; 0: the chip does not say. */
    uint32_t lockout_seconds;
    char text[256];
} keychain_tpm_report;

/* What a sealed secret is stored as: the name of the key it was sealed under, and both parts as the chip encodes them. */
typedef struct {
    size_t root_key_name_byte_count;
    size_t public_area_byte_count;
    size_t private_area_byte_count;
    uint8_t root_key_name[KEYCHAIN_TPM_LARGEST_NAME];
    uint8_t public_area[KEYCHAIN_TPM_LARGEST_PUBLIC_AREA];
    uint8_t private_area[KEYCHAIN_TPM_LARGEST_PRIVATE_AREA];
} keychain_tpm_object;

typedef struct {
    /* Four characters each, the first in the highest byte. */
    uint32_t manufacturer;
    uint32_t vendor_string[4];
    uint32_t firmware_version[2];
    uint32_t lockout_counter;
    uint32_t largest_lockout_counter;
    uint32_t lockout_interval_seconds;
    bool is_locked_out;
    bool is_lockout_authorization_set;
} keychain_tpm_state;

/* Where the chip is, and how long one call may take. */
typedef struct {
    /* As Tss2_TctiLdr_Initialize takes it; one without the name of a module is refused. */
    const char *tcti;
    uint32_t timeout_milliseconds;
    /* Called once, on whichever thread, when the chip is no longer used: after KEYCHAIN_TPM_BUSY that can be long after the return. */
    void (*ended)(void *context);
    void *context;
} keychain_tpm_call;

/* Whether this build can talk to a TPM. */
bool keychain_tpm_is_built(void);

/* What a response code means, by its format and its number, whichever parameter, handle or session it names. */
keychain_tpm_outcome keychain_tpm_classify(uint32_t response_code);

/* Whether both parts have the form, to the byte, of what keychain_tpm_seal gives. `is_authorized` tells which of its two forms. */
bool keychain_tpm_object_is_well_formed(const keychain_tpm_object *object, bool *is_authorized);

/* The policy of objects with an authorization: TPM2_PolicyAuthValue and nothing else, under SHA-256. */
void keychain_tpm_policy_digest(uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT]);

/* The same as the chip computes it, in a trial session. */
void keychain_tpm_compute_policy_digest(
    const keychain_tpm_call *call, uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT], keychain_tpm_report *report);

/* The name of the storage root key goes to the object's field. If there is none it is made, or the object is one of another chip. */
void keychain_tpm_root_key_name(
    const keychain_tpm_call *call, bool makes_root_key, keychain_tpm_object *object, keychain_tpm_report *report);

/* Seals up to KEYCHAIN_TPM_LARGEST_SECRET bytes. `authorization`: KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT bytes, or NULL. */
void keychain_tpm_seal(
    const keychain_tpm_call *call, const void *secret, size_t byte_count, const void *authorization, keychain_tpm_object *object,
    keychain_tpm_report *report);

/* What was sealed goes to `secret`, which has room for KEYCHAIN_TPM_LARGEST_SECRET bytes. */
void keychain_tpm_unseal(
    const keychain_tpm_call *call, const keychain_tpm_object *object, const void *authorization, void *secret, size_t *byte_count,
    keychain_tpm_report *report);

void keychain_tpm_read_state(const keychain_tpm_call *call, keychain_tpm_state *state, keychain_tpm_report *report);

#endif
