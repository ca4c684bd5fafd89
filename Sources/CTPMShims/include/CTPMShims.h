/* SPDX-License-Identifier: Apache-2.0 */
/* Access to a TPM 2.0 through tpm2-tss, whose libraries are loaded at the first call. The interface uses bytes only and no type of
   tpm2-tss. In a build without KEYCHAIN_TPM every function that needs the TPM reports KEYCHAIN_TPM_UNAVAILABLE, "not built with TPM". */
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
    /* No response in time, or busy even after several attempts. */
    KEYCHAIN_TPM_BUSY,
    /* There is no such handle. */
    KEYCHAIN_TPM_MISSING,
    KEYCHAIN_TPM_FAILED,
} keychain_tpm_outcome;

/* An outcome with its details. Contains no secret. */
typedef struct {
    keychain_tpm_outcome outcome;
    /* The code of the TPM or of tpm2-tss; 0: there is none. */
    uint32_t response_code;
    /* With KEYCHAIN_TPM_LOCKED_OUT: seconds until one counted attempt is forgiven; 0: unknown. */
    uint32_t lockout_seconds;
    char text[256];
} keychain_tpm_report;

/* A sealed secret: the name of the key that it was sealed under, and both parts as the TPM encodes them. */
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

/* Which TPM to use, and how long one call may take. */
typedef struct {
    /* The argument of Tss2_TctiLdr_Initialize. It must name a module. */
    const char *tcti;
    uint32_t timeout_milliseconds;
    /* Called once, on any thread, when the TPM is no longer in use. After KEYCHAIN_TPM_BUSY that may be long after the call returned. */
    void (*ended)(void *context);
    void *context;
} keychain_tpm_call;

/* Whether this build can talk to a TPM. */
bool keychain_tpm_is_built(void);

/* Returns the outcome that a response code means, whichever parameter, handle, or session it names. */
keychain_tpm_outcome keychain_tpm_classify(uint32_t response_code);

/* Returns whether both parts have exactly the form that keychain_tpm_seal produces, with an authorization or without one. */
bool keychain_tpm_object_is_well_formed(const keychain_tpm_object *object, bool *is_authorized);

/* Returns the policy of objects with an authorization: TPM2_PolicyAuthValue alone, under SHA-256. */
void keychain_tpm_policy_digest(uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT]);

/* The same policy, computed by the TPM in a trial session. */
void keychain_tpm_compute_policy_digest(
    const keychain_tpm_call *call, uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT], keychain_tpm_report *report);

/* Stores the name of the storage root key in `object`. If there is none, creates it, or reports KEYCHAIN_TPM_FOREIGN_OBJECT if
   `makes_root_key` is false. */
void keychain_tpm_root_key_name(
    const keychain_tpm_call *call, bool makes_root_key, keychain_tpm_object *object, keychain_tpm_report *report);

/* Seals up to KEYCHAIN_TPM_LARGEST_SECRET bytes. `authorization`: KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT bytes, or NULL. */
void keychain_tpm_seal(
    const keychain_tpm_call *call, const void *secret, size_t byte_count, const void *authorization, keychain_tpm_object *object,
    keychain_tpm_report *report);

/* Unseals into `secret`, which must have room for KEYCHAIN_TPM_LARGEST_SECRET bytes. */
void keychain_tpm_unseal(
    const keychain_tpm_call *call, const keychain_tpm_object *object, const void *authorization, void *secret, size_t *byte_count,
    keychain_tpm_report *report);

void keychain_tpm_read_state(const keychain_tpm_call *call, keychain_tpm_state *state, keychain_tpm_report *report);

#endif
