/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"
#include "worker.h"

#ifdef KEYCHAIN_TPM

#include <string.h>

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
        /* How long it lasts is asked for, and not knowing it is no failure of its own. */
        keychain_tpm_report ignored = {0};
        keychain_tpm_state state;
        connection.report = &ignored;
        if (tpm_read_state(&connection, &state)) report.lockout_seconds = state.lockout_interval_seconds;
    }
    tpm_connection_close(&connection);
    exchange->report = report;
}

#endif
