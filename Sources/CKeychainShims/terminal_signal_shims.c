/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "terminal_signal_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int noted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF};
#define NOTED_COUNT (sizeof noted / sizeof *noted)
/* The position of SIGALRM. From there on, a handler of the program stays: it may use these signals for other purposes than to end. */
#define FIRST_LEFT_TO_HANDLERS 6

static bool is_about_stopping(int signal) { return signal == SIGTSTP || signal == SIGCONT; }

/* Never closed: a handler may run in another thread at any time, when the number could belong to another file. */
static volatile sig_atomic_t note_end = -1;
static int read_end = -1;
static pid_t owner;
static struct sigaction before[NOTED_COUNT];
static bool is_replaced[NOTED_COUNT];

static void note(int signal) {
    int saved = errno;
    if (getpid() != owner) {
        /* A child that another thread has forked: its signal must not end the parent's dialog. It takes effect when this returns. */
        for (size_t index = 0; index < NOTED_COUNT; index++) {
            if (noted[index] == signal) (void)sigaction(signal, &before[index], NULL);
        }
        (void)kill(getpid(), signal);
        errno = saved;
        return;
    }
    unsigned char number = (unsigned char)signal;
    if (write(note_end, &number, 1) < 0) { /* The pipe is full, so a signal is already recorded. */
    }
    errno = saved;
}

static bool open_pipe(void) {
    /* A forked child must not share its parent's pipe. */
    if (read_end >= 0 && owner == getpid()) return true;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    if (read_end >= 0) {
        (void)close(read_end);
        (void)close(note_end);
    }
    read_end = ends[0];
    note_end = ends[1];
    owner = getpid();
    return true;
}

/* The number of the next signal that was noted; 0 if there is none. */
static int next_noted(void) {
    unsigned char number = 0;
    return read(read_end, &number, 1) == 1 ? number : 0;
}

int keychain_terminal_signals_record(bool notes_stop) {
    if (!open_pipe()) return -1;
    while (next_noted() != 0) {}
    for (size_t index = 0; index < NOTED_COUNT; index++) {
        is_replaced[index] = false;
        if (is_about_stopping(noted[index]) && !notes_stop) continue;
        if (sigaction(noted[index], NULL, &before[index]) != 0) continue;
        bool has_handler = (before[index].sa_flags & SA_SIGINFO) || before[index].sa_handler != SIG_DFL;
        if (has_handler && (index >= FIRST_LEFT_TO_HANDLERS || before[index].sa_handler == SIG_IGN)) continue;
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = note;
        action.sa_flags = SA_RESTART;
        sigfillset(&action.sa_mask);
        is_replaced[index] = sigaction(noted[index], &action, NULL) == 0;
    }
    return read_end;
}

bool keychain_terminal_signals_restore(void) {
    for (size_t index = 0; index < NOTED_COUNT; index++) {
        if (!is_replaced[index]) continue;
        is_replaced[index] = false;
        struct sigaction now;
        /* Keeps a handler that other code has installed meanwhile. */
        if (sigaction(noted[index], NULL, &now) != 0 || now.sa_handler != note) continue;
        (void)sigaction(noted[index], &before[index], NULL);
    }
    bool is_ending = false;
    for (int number; (number = next_noted()) != 0;) {
        if (!is_about_stopping(number)) is_ending = true;
        /* Raised in this thread, so that it takes effect before this thread uses the terminal again. */
        sigset_t raised, previous;
        sigemptyset(&raised);
        sigaddset(&raised, number);
        (void)pthread_sigmask(SIG_UNBLOCK, &raised, &previous);
        (void)raise(number);
        (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    }
    return is_ending;
}

bool keychain_terminal_output_signal_block(bool is_blocked) {
    sigset_t output, previous;
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    (void)pthread_sigmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &output, &previous);
    return sigismember(&previous, SIGTTOU) == 1;
}
