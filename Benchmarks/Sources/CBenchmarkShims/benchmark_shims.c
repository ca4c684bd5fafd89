/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "benchmark_shims.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool benchmark_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; }

int benchmark_wait(pid_t child, int timeout_milliseconds, int *status) {
    int result = 0;
    int descriptor = (int)syscall(SYS_pidfd_open, child, 0);
    if (descriptor >= 0) {
        struct pollfd ending = {.fd = descriptor, .events = POLLIN};
        int count;
        do count = poll(&ending, 1, timeout_milliseconds);
        while (count < 0 && errno == EINTR);
        if (count == 0) result = ETIMEDOUT;
        close(descriptor);
    } else {
        /* Kernels before 5.3, and sandboxes, have no pidfd: poll twice per millisecond. */
        int rounds = timeout_milliseconds * 2;
        for (siginfo_t ending; rounds > 0; rounds--) {
            ending.si_pid = 0;
            if (waitid(P_PID, (id_t)child, &ending, WEXITED | WNOHANG | WNOWAIT) != 0 || ending.si_pid == child) break;
            usleep(500);
        }
        if (rounds <= 0) result = ETIMEDOUT;
    }
    /* The child was not waited for yet, so its process ID was not reused. */
    if (result == ETIMEDOUT) kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0) {
        if (errno != EINTR) return errno;
    }
    return result;
}
