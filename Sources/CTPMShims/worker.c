/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "worker.h"

#ifdef KEYCHAIN_TPM

#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTE_COUNT (1024 * 1024)
/* More than the calls here and in tpm2-tss use. */
#define WIPED_STACK_BYTE_COUNT (256 * 1024)
#define LARGEST_PAUSE_MILLISECONDS 250

struct worker {
    pthread_mutex_t mutex;
    pthread_cond_t finished;
    bool is_finished;
    bool is_abandoned;
    struct timespec deadline;
    void (*ended)(void *context);
    void *context;
    char *tcti;
    struct tpm_exchange exchange;
};

void tpm_report(keychain_tpm_report *report, keychain_tpm_outcome outcome, uint32_t response_code, const char *format, ...) {
    report->outcome = outcome;
    report->response_code = response_code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->text, sizeof report->text, format, arguments);
    va_end(arguments);
}

static struct timespec later(struct timespec time, uint32_t milliseconds) {
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

static bool is_past(struct timespec time, struct timespec deadline) {
    return time.tv_sec > deadline.tv_sec || (time.tv_sec == deadline.tv_sec && time.tv_nsec >= deadline.tv_nsec);
}

static void destroy(struct worker *worker) {
    pthread_cond_destroy(&worker->finished);
    pthread_mutex_destroy(&worker->mutex);
    free(worker->tcti);
    explicit_bzero(worker, sizeof *worker);
    free(worker);
}

/* Waits before the next attempt. Returns false if there is no time for one, or the caller is gone. */
static bool pause_before_next(struct worker *worker, uint32_t milliseconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* Random jitter of up to the same length: callers that collided must not collide again. */
    struct timespec next = later(now, milliseconds + (uint32_t)(now.tv_nsec / 1000) % milliseconds);
    if (is_past(next, worker->deadline)) return false;
    pthread_mutex_lock(&worker->mutex);
    bool is_abandoned = worker->is_abandoned;
    pthread_mutex_unlock(&worker->mutex);
    return !is_abandoned && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == 0;
}

/* Gives this thread its own descriptor table, empty but for the standard streams. Otherwise child processes that other threads start
   meanwhile would inherit tpm2-tss's descriptors, and a TPM without a resource manager would stay busy until they exit. Best effort:
   the call proceeds if the kernel refuses. */
static void separate_descriptors(void) { syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_UNSHARE); }

static void *work(void *argument) {
    struct worker *worker = argument;
    separate_descriptors();
    uint32_t milliseconds = 4;
    /* Ends at the latest when the call's timeout expires. */
    for (;;) {
        tpm_perform(worker->tcti, &worker->exchange);
        if (worker->exchange.report.outcome != KEYCHAIN_TPM_BUSY || !pause_before_next(worker, milliseconds)) break;
        milliseconds = 2 * milliseconds < LARGEST_PAUSE_MILLISECONDS ? 2 * milliseconds : LARGEST_PAUSE_MILLISECONDS;
    }
    tpm_wipe_stack(WIPED_STACK_BYTE_COUNT);
    worker->ended(worker->context);
    pthread_mutex_lock(&worker->mutex);
    worker->is_finished = true;
    bool is_abandoned = worker->is_abandoned;
    if (!is_abandoned) pthread_cond_signal(&worker->finished);
    pthread_mutex_unlock(&worker->mutex);
    if (is_abandoned) destroy(worker);
    return NULL;
}

static bool start(struct worker *worker) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTE_COUNT);
    sigset_t all, previous;
    sigfillset(&all);
    /* A new thread inherits the signal mask. */
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    pthread_t thread;
    bool is_started = pthread_create(&thread, &attributes, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    pthread_attr_destroy(&attributes);
    return is_started;
}

static struct worker *create(const keychain_tpm_call *call, const struct tpm_exchange *exchange) {
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker) return NULL;
    worker->tcti = strdup(call->tcti);
    if (!worker->tcti) {
        free(worker);
        return NULL;
    }
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->finished, &attributes);
    pthread_condattr_destroy(&attributes);
    clock_gettime(CLOCK_MONOTONIC, &worker->deadline);
    worker->deadline = later(worker->deadline, call->timeout_milliseconds);
    worker->ended = call->ended;
    worker->context = call->context;
    worker->exchange = *exchange;
    return worker;
}

void tpm_run(const keychain_tpm_call *call, struct tpm_exchange *exchange) {
    struct worker *worker = create(call, exchange);
    if (!worker || !start(worker)) {
        if (worker) destroy(worker);
        call->ended(call->context);
        tpm_report(&exchange->report, KEYCHAIN_TPM_FAILED, 0, "no memory or no thread for a call to the TPM");
        return;
    }
    bool is_late = false;
    pthread_mutex_lock(&worker->mutex);
    while (!worker->is_finished && !is_late) {
        is_late = pthread_cond_timedwait(&worker->finished, &worker->mutex, &worker->deadline) != 0;
    }
    bool is_finished = worker->is_finished;
    if (is_finished) *exchange = worker->exchange;
    worker->is_abandoned = !is_finished;
    pthread_mutex_unlock(&worker->mutex);
    if (is_finished) {
        destroy(worker);
    } else {
        tpm_report(&exchange->report, KEYCHAIN_TPM_BUSY, 0, "the TPM gave no answer within %u ms", call->timeout_milliseconds);
    }
}

#endif
