/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the TPM for one call, and the steps that use it. */
#ifndef KEYCHAIN_TPM_CONNECTION_H
#define KEYCHAIN_TPM_CONNECTION_H
#ifdef KEYCHAIN_TPM

#include "CTPMShims.h"

#include <stdbool.h>
#include <stddef.h>
#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tcti.h>
#include <tss2/tss2_tctildr.h>

/* The functions of tpm2-tss in use, found at run time: a program must start where the libraries are absent. */
#define TSS2_FUNCTIONS(in)                                                                                                     \
    in(tctildr, Tss2_TctiLdr_Initialize) in(tctildr, Tss2_TctiLdr_Finalize)                                                    \
    in(rc, Tss2_RC_Decode)                                                                                                     \
    in(mu, Tss2_MU_TPM2B_PUBLIC_Marshal) in(mu, Tss2_MU_TPM2B_PUBLIC_Unmarshal)                                                \
    in(mu, Tss2_MU_TPM2B_PRIVATE_Marshal) in(mu, Tss2_MU_TPM2B_PRIVATE_Unmarshal)                                              \
    in(esys, Esys_Initialize) in(esys, Esys_Finalize) in(esys, Esys_Free) in(esys, Esys_Startup) in(esys, Esys_GetCapability)  \
    in(esys, Esys_TR_FromTPMPublic) in(esys, Esys_TR_GetName) in(esys, Esys_TR_SetAuth) in(esys, Esys_TR_Close)                \
    in(esys, Esys_ReadPublic) in(esys, Esys_CreatePrimary) in(esys, Esys_EvictControl) in(esys, Esys_FlushContext)             \
    in(esys, Esys_StartAuthSession) in(esys, Esys_TRSess_SetAttributes)                                                        \
    in(esys, Esys_PolicyAuthValue) in(esys, Esys_PolicyGetDigest)                                                              \
    in(esys, Esys_Create) in(esys, Esys_Load) in(esys, Esys_Unseal)

struct tss2_library {
#define TSS2_MEMBER(library, function) __typeof__(function) *function;
    TSS2_FUNCTIONS(TSS2_MEMBER)
#undef TSS2_MEMBER
};

/* Opens the libraries, once in the life of the process. Returns NULL if one is missing or too old; `text` then names it. */
const struct tss2_library *tss2_library_open(char *text, size_t capacity);

/* A TCTI in front of the TPM's own that can drop commands: they are then answered with a failure and never reach the TPM.

   tpm2-tss frees memory without wiping the copies of secrets in it: the plaintexts of seal and unseal, and the authorizations of
   sessions. The next command of the same kind reuses the same places. So, before that memory is freed, the same commands run once
   more with zeros, while the filter drops them. */
struct tpm_tcti_filter {
    /* The first member: tpm2-tss uses a pointer to it as a pointer to the whole. */
    TSS2_TCTI_CONTEXT_COMMON_V1 common;
    TSS2_TCTI_CONTEXT *chip;
    bool drops_commands;
};

TSS2_TCTI_CONTEXT *tpm_tcti_filter_wrap(struct tpm_tcti_filter *filter, TSS2_TCTI_CONTEXT *chip);

/* A connection to the TPM for one call, with the storage root key. */
struct tpm_connection {
    const struct tss2_library *tss2;
    TSS2_TCTI_CONTEXT *tcti;
    struct tpm_tcti_filter filter;
    ESYS_CONTEXT *esys;
    /* The storage root key. It is persistent in the TPM, so it is never flushed. */
    ESYS_TR root_key;
    TPM2B_NAME root_key_name;
    /* Filled in by the first step that fails. */
    keychain_tpm_report *report;
};

bool tpm_connection_open(struct tpm_connection *connection, const char *tcti, keychain_tpm_report *report);
void tpm_connection_close(struct tpm_connection *connection);

/* Returns whether `code` is success; if not, fills in the report. */
bool tpm_is_done(struct tpm_connection *connection, TSS2_RC code, const char *step);

/* As above, for steps that the caller's authorization plays no part in: a refusal means that the TPM has passwords of its own. */
bool tpm_is_done_as_owner(struct tpm_connection *connection, TSS2_RC code, const char *step);

/* Removes a loaded object or a session from the TPM. */
void tpm_flush(struct tpm_connection *connection, ESYS_TR *loaded);

/* Overwrites the copies of secrets in tpm2-tss's memory with zeros. `loaded` is an object whose authorization is among them, or
   ESYS_TR_NONE. Call it before the session that was used with them is flushed. */
void tpm_overwrite(struct tpm_connection *connection, ESYS_TR loaded, ESYS_TR session);

/* Finds the storage root key. If there is none, creates it, or reports KEYCHAIN_TPM_FOREIGN_OBJECT if `makes_root_key` is false. */
bool tpm_root_key_find(struct tpm_connection *connection, bool makes_root_key);

/* Starts a session whose key is encrypted to the storage root key, so that only this TPM can recover it. The authorization of
   `bound` is part of the session key. Parameters of commands with this session are encrypted in both directions. */
bool tpm_session_start(struct tpm_connection *connection, ESYS_TR bound, TPM2_SE type, ESYS_TR *session);

/* The tasks. Each requires that the root key was found. */
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
