/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CTPMShims.h that use the TPM, and the steps that a task consists of. */
#define _GNU_SOURCE
#include "worker.h"

#include <alloca.h>
#include <string.h>

/* Small against the smallest stack that a thread may have. */
#define WIPED_STACK_BYTE_COUNT (16 * 1024)

__attribute__((noinline)) void tpm_wipe_stack(size_t byte_count) { explicit_bzero(alloca(byte_count), byte_count); }

#ifdef KEYCHAIN_TPM

#include "connection.h"

bool keychain_tpm_is_built(void) { return true; }

static bool perform(struct tpm_connection *connection, struct tpm_exchange *exchange) {
    const uint8_t *authorization = exchange->is_authorized ? exchange->authorization : NULL;
    if (exchange->task == TPM_TASK_STATE) return tpm_read_state(connection, &exchange->state);
    if (!tpm_root_key_find(connection, exchange->makes_root_key)) return false;
    switch (exchange->task) {
    case TPM_TASK_SEAL:
        return tpm_seal(connection, exchange->secret, exchange->secret_byte_count, authorization, &exchange->object);
    case TPM_TASK_UNSEAL:
        return tpm_unseal(connection, &exchange->object, authorization, exchange->secret, &exchange->secret_byte_count);
    case TPM_TASK_POLICY_DIGEST: return tpm_compute_policy_digest(connection, exchange->policy_digest);
    default:
        exchange->object.root_key_name_byte_count = connection->root_key_name.size;
        memcpy(exchange->object.root_key_name, connection->root_key_name.name, connection->root_key_name.size);
        return true;
    }
}

void tpm_perform(const char *tcti, struct tpm_exchange *exchange) {
    keychain_tpm_report report = {0};
    struct tpm_connection connection;
    bool is_done = tpm_connection_open(&connection, tcti, &report) && perform(&connection, exchange);
    if (!is_done && report.outcome == KEYCHAIN_TPM_LOCKED_OUT) {
        /* Best effort: the lockout is reported with or without its duration. */
        keychain_tpm_report ignored = {0};
        keychain_tpm_state state;
        connection.report = &ignored;
        if (tpm_read_state(&connection, &state)) report.lockout_seconds = state.lockout_interval_seconds;
    }
    tpm_connection_close(&connection);
    exchange->report = report;
}

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
        *report = (keychain_tpm_report){.outcome = KEYCHAIN_TPM_FAILED, .text = "the object is not one that a TPM sealed this way"};
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
