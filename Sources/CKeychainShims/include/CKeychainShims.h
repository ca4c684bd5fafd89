/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that Swift's Glibc overlay does not import, one header per subject. */
#ifndef CKEYCHAINSHIMS_H
#define CKEYCHAINSHIMS_H
#include "child_shims.h"
#include "file_shims.h"
#include "inspection_shims.h"
#include "keyring_shims.h"
#include "process_shims.h"
#include "secret_memory_shims.h"
#include "socket_shims.h"
#include "terminal_signal_shims.h"
#include "testing_scope_shims.h"
#include "timed_lock_shims.h"
#include "user_shims.h"
#endif
