/* SPDX-License-Identifier: Apache-2.0 */
/* What Swift's Glibc overlay hides, one header per concern. */
#ifndef CKEYCHAINSHIMS_H
#define CKEYCHAINSHIMS_H
#include "child_shims.h"
#include "file_shims.h"
#include "keyring_shims.h"
#include "process_shims.h"
#include "secret_memory_shims.h"
#include "terminal_signal_shims.h"
#include "testing_scope_shims.h"
#include "timed_lock_shims.h"
#endif
