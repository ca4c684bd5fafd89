/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tpm2-tss that are used, found at run time: a program runs where the libraries are absent. */
#ifndef KEYCHAIN_TSS2_LIBRARY_H
#define KEYCHAIN_TSS2_LIBRARY_H
#ifdef KEYCHAIN_TPM

#include <stdbool.h>
#include <stddef.h>
#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tctildr.h>

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

/* Opens the libraries, once for the life of the process; NULL: one is missing or too old, and `text` says which. */
const struct tss2_library *tss2_library_open(char *text, size_t capacity);

/* Keeps tpm2-tss from writing to the standard error of the program. */
void tss2_library_silence(void);

#endif
#endif
