/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one call to the TPM on its own thread. */
#ifndef KEYCHAIN_TPM_WORKER_H
#define KEYCHAIN_TPM_WORKER_H

#include "CTPMShims.h"

enum tpm_task { TPM_TASK_ROOT_KEY_NAME, TPM_TASK_SEAL, TPM_TASK_UNSEAL, TPM_TASK_STATE, TPM_TASK_POLICY_DIGEST };

/* The input and output of a call. Caller and thread each have a copy, since the caller may return before the thread ends. */
struct tpm_exchange {
    enum tpm_task task;
    /* Whether to create the storage root key if the TPM has none. Reading and unsealing never change the TPM. */
    bool makes_root_key;
    bool is_authorized;
    uint8_t authorization[KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT];
    size_t secret_byte_count;
    uint8_t secret[KEYCHAIN_TPM_LARGEST_SECRET];
    keychain_tpm_object object;
    keychain_tpm_state state;
    uint8_t policy_digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT];
    keychain_tpm_report report;
};

/* Performs the task of the exchange and stores the result there. Stops waiting when the call's timeout expires.

   It uses a thread because tpm2-tss bounds neither opening a connection nor waiting for a response: its modules accept a timeout and
   most ignore it. An abandoned thread ends when the TPM responds or the connection breaks. All signals are blocked on the thread, so
   that writing to a broken connection does not end the process. */
void tpm_run(const keychain_tpm_call *call, struct tpm_exchange *exchange);

/* One attempt, on the worker's thread. */
void tpm_perform(const char *tcti, struct tpm_exchange *exchange);

/* Wipes the stack below the caller's frame: functions that have returned left secrets there, spilled registers among them. */
void tpm_wipe_stack(size_t byte_count);

void tpm_report(keychain_tpm_report *report, keychain_tpm_outcome outcome, uint32_t response_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
