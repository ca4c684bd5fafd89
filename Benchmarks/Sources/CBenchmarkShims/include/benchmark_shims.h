/* SPDX-License-Identifier: Apache-2.0 */
/* What Swift's Glibc hides. */
#ifndef BENCHMARK_SHIMS_H
#define BENCHMARK_SHIMS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on processes whose parent has ended become children of this one, where it can find and end them. */
bool benchmark_adopt_orphans(void);

/* Waits for a child, and kills it when it has not ended after `timeout_milliseconds`.
   Returns 0, ETIMEDOUT, or what waitpid says. `status` is that of waitpid. */
int benchmark_wait(pid_t child, int timeout_milliseconds, int *status);

#endif
