/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that Swift's Glibc module does not import. */
#ifndef BENCHMARK_SHIMS_H
#define BENCHMARK_SHIMS_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes orphaned descendants children of this process from now on, so that it can find and kill them. */
bool benchmark_adopt_orphans(void);

/* Waits for a child, and kills it if it has not exited after `timeout_milliseconds`.
   Returns 0, ETIMEDOUT, or what waitpid says. `status` is that of waitpid. */
int benchmark_wait(pid_t child, int timeout_milliseconds, int *status);

#endif
