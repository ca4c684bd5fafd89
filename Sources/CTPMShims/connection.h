/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the chip for one call, and what is loaded in the chip through it. */
#ifndef KEYCHAIN_TPM_CONNECTION_H
#define KEYCHAIN_TPM_CONNECTION_H
#ifdef KEYCHAIN_TPM

#include "CTPMShims.h"
#include "gate.h"
#include "tss2_library.h"

struct tpm_connection {
    const struct tss2_library *tss2;
    TSS2_TCTI_CONTEXT *tcti;
    struct tpm_tcti_filter gate;
    ESYS_CONTEXT *esys;
    /* The storage root key; not loaded by us, so not flushed. */
    ESYS_TR root_key;
    TPM2B_NAME root_key_name;
    /* What the first step that failed has left. */
    keychain_tpm_report *report;
};

bool tpm_connection_open(struct tpm_connection *connection, const char *tcti, keychain_tpm_report *report);
void tpm_connection_close(struct tpm_connection *connection);

/* Whether a step was done; if not, the report says what went wrong in it. */
bool tpm_is_done(struct tpm_connection *connection, TSS2_RC code, const char *step);

/* The same, for steps that are not authorized by the caller's authorization: a refusal means that the chip has passwords of its own. */
bool tpm_is_done_as_owner(struct tpm_connection *connection, TSS2_RC code, const char *step);

/* Takes out of the chip what was loaded into it. */
void tpm_flush(struct tpm_connection *connection, ESYS_TR *loaded);

/* Puts zeros over what tpm2-tss keeps of secrets; `loaded` is an object whose authorization is among them, or ESYS_TR_NONE. To be
   called while the session that was used with them is still there. */
void tpm_overwrite(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session);

/* Finds the storage root key. Where there is none it is made, or nothing that we sealed can be this chip's. */
bool tpm_root_key_find(struct tpm_connection *connection, bool makes_root_key);

/* A session whose key only the chip with the storage root key can find out; the authorization of `bound` is part of that key. What
   the session accompanies is encrypted in both directions. */
bool tpm_session_start(struct tpm_connection *connection, ESYS_TR bound, TPM2_SE type, ESYS_TR *session);

/* Each fills in what its call asks for; the root key is found. */
bool tpm_seal(
    struct tpm_connection *connection, const uint8_t *secret, size_t byte_count, const uint8_t *authorization,
    keychain_tpm_object *object);
bool tpm_unseal(
    struct tpm_connection *connection, const keychain_tpm_object *object, const uint8_t *authorization, uint8_t *secret,
    size_t *byte_count);
bool tpm_read_state(struct tpm_connection *connection, keychain_tpm_state *state);
bool tpm_compute_policy_digest(struct tpm_connection *connection, uint8_t *digest);

#endif
#endif
