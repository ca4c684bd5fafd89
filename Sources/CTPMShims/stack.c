/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "worker.h"

#include <alloca.h>
#include <string.h>

__attribute__((noinline)) void tpm_wipe_stack(size_t byte_count) { explicit_bzero(alloca(byte_count), byte_count); }
