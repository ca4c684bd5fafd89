/* SPDX-License-Identifier: Apache-2.0 */
/* One call to the chip, on a thread of its own. */
#ifndef KEYCHAIN_TPM_WORKER_H
#define KEYCHAIN_TPM_WORKER_H

#include "CTPMShims.h"

enum tpm_task { TPM_TASK_ROOT_KEY_NAME, TPM_TASK_SEAL, TPM_TASK_UNSEAL, TPM_TASK_STATE, TPM_TASK_POLICY_DIGEST };

/* What a call needs and gives. Both sides have a copy of their own, since the caller may be gone before the thread ends. */
struct tpm_exchange {
    enum tpm_task task;
    /* Whether a chip without a storage root key is given one; looking and unsealing leave a chip that is not ours as it is. */
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

/* Does what the exchange asks, and leaves in it what came of it; gives up waiting at the end of the call's time.

   A thread, because neither opening a connection nor waiting for an answer can be bounded in tpm2-tss: its modules take a time
   limit and most ignore it. A thread left behind ends when the chip answers or the connection breaks. No signal is handled on it,
   so that writing to a broken connection does not end the program. */
void tpm_run(const keychain_tpm_call *call, struct tpm_exchange *exchange);

/* One try, on the thread of the worker. */
void tpm_perform(const char *tcti, struct tpm_exchange *exchange);

/* Wipes what functions that have returned left below on the stack: registers are kept there too, and some held secrets. */
void tpm_wipe_stack(size_t byte_count);

void tpm_report(keychain_tpm_report *report, keychain_tpm_outcome outcome, uint32_t response_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
