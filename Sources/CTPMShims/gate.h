/* SPDX-License-Identifier: Apache-2.0 */
/* A connection in front of the chip's that can be shut: then commands go nowhere and are answered with a failure.

   tpm2-tss keeps copies of secrets in memory that it frees and does not wipe: what is to be sealed, what was unsealed, and the
   authorization in the values of sessions. They lie where the next command puts the same things. So, before its memory is freed,
   it is given the same commands about zeros, behind a shut gate. */
#ifndef KEYCHAIN_TPM_GATE_H
#define KEYCHAIN_TPM_GATE_H
#ifdef KEYCHAIN_TPM

#include <stdbool.h>
#include <tss2/tss2_tcti.h>

struct tpm_tcti_filter {
    /* First, since tpm2-tss takes a pointer to it for one to the whole. */
    TSS2_TCTI_CONTEXT_COMMON_V1 common;
    TSS2_TCTI_CONTEXT *chip;
    bool is_shut;
};

TSS2_TCTI_CONTEXT *tpm_tcti_filter_wrap(struct tpm_tcti_filter *gate, TSS2_TCTI_CONTEXT *chip);

#endif
#endif
