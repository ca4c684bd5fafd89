/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a process poorer than it is, to see how the code bears it. For tests alone. */
#ifndef CKEYCHAINTESTSHIMS_H
#define CKEYCHAINTESTSHIMS_H

#include "planted_faults.h"

/* From now on the kernel answers EPERM, in every thread, when this process asks for its keyring, as in most containers.
   Returns 0 or an errno value. */
int keychain_test_refuse_keyring(void);

#endif
