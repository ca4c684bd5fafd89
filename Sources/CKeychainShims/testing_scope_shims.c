/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_scope_shims.h"

#include <stdatomic.h>

static atomic_bool scope_is_required;

void keychain_require_testing_scope(void) { atomic_store_explicit(&scope_is_required, true, memory_order_relaxed); }

bool keychain_testing_scope_is_required(void) { return atomic_load_explicit(&scope_is_required, memory_order_relaxed); }
