/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "worker.h"

#include <string.h>

/* A small part of the smallest stack that threads have. */
#define WIPED_STACK_BYTE_COUNT (16 * 1024)

#ifdef KEYCHAIN_TPM

bool keychain_tpm_is_built(void) { return true; }

#else

#include <stdio.h>

bool keychain_tpm_is_built(void) { return false; }

void tpm_run(const keychain_tpm_call *call, struct tpm_exchange *exchange) {
    call->ended(call->context);
    exchange->report.outcome = KEYCHAIN_TPM_UNAVAILABLE;
    snprintf(exchange->report.text, sizeof exchange->report.text, "not built with TPM");
}

#endif

void keychain_tpm_root_key_name(
    const keychain_tpm_call *call, bool makes_root_key, keychain_tpm_object *object, keychain_tpm_report *report) {
    struct tpm_exchange exchange = {.task = TPM_TASK_ROOT_KEY_NAME, .makes_root_key = makes_root_key};
    tpm_run(call, &exchange);
    *object = exchange.object;
    *report = exchange.report;
}

void keychain_tpm_seal(
    const keychain_tpm_call *call, const void *secret, size_t byte_count, const void *authorization, keychain_tpm_object *object,
    keychain_tpm_report *report) {
    struct tpm_exchange exchange = {
        .task = TPM_TASK_SEAL, .makes_root_key = true, .secret_byte_count = byte_count, .is_authorized = authorization != NULL};
    if (byte_count == 0 || byte_count > sizeof exchange.secret) {
        call->ended(call->context);
        *report = (keychain_tpm_report){.outcome = KEYCHAIN_TPM_FAILED, .text = "a TPM seals 1 to 64 bytes"};
        return;
    }
    memcpy(exchange.secret, secret, byte_count);
    if (authorization) memcpy(exchange.authorization, authorization, sizeof exchange.authorization);
    tpm_run(call, &exchange);
    *object = exchange.object;
    *report = exchange.report;
    explicit_bzero(&exchange, sizeof exchange);
    tpm_wipe_stack(WIPED_STACK_BYTE_COUNT);
}

void keychain_tpm_unseal(
    const keychain_tpm_call *call, const keychain_tpm_object *object, const void *authorization, void *secret, size_t *byte_count,
    keychain_tpm_report *report) {
    struct tpm_exchange exchange = {.task = TPM_TASK_UNSEAL, .object = *object, .is_authorized = authorization != NULL};
    bool is_authorized = false;
    if (!keychain_tpm_object_is_well_formed(object, &is_authorized) || is_authorized != exchange.is_authorized) {
        call->ended(call->context);
        *report = (keychain_tpm_report){.outcome = KEYCHAIN_TPM_FAILED, .text = "this is not what a TPM sealed that way"};
        return;
    }
    if (authorization) memcpy(exchange.authorization, authorization, sizeof exchange.authorization);
    tpm_run(call, &exchange);
    if (exchange.report.outcome == KEYCHAIN_TPM_DONE) {
        memcpy(secret, exchange.secret, sizeof exchange.secret);
        *byte_count = exchange.secret_byte_count;
    }
    *report = exchange.report;
    explicit_bzero(&exchange, sizeof exchange);
    tpm_wipe_stack(WIPED_STACK_BYTE_COUNT);
}

void keychain_tpm_read_state(const keychain_tpm_call *call, keychain_tpm_state *state, keychain_tpm_report *report) {
    struct tpm_exchange exchange = {.task = TPM_TASK_STATE};
    tpm_run(call, &exchange);
    *state = exchange.state;
    *report = exchange.report;
}

void keychain_tpm_compute_policy_digest(
    const keychain_tpm_call *call, uint8_t digest[KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT], keychain_tpm_report *report) {
    struct tpm_exchange exchange = {.task = TPM_TASK_POLICY_DIGEST, .makes_root_key = true};
    tpm_run(call, &exchange);
    memcpy(digest, exchange.policy_digest, sizeof exchange.policy_digest);
    *report = exchange.report;
}
