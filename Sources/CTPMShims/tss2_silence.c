/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tss2_library.h"

#ifdef KEYCHAIN_TPM

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* tpm2-tss knows one switch for its messages, the variable TSS2_LOG, which each of its files reads when it first has something to
   say: so it must stand in the environment, and stay.

   setenv(3) may free the array of variables while another thread walks it in getenv(3). So a longer array is made beside the
   present one and takes its place in one store, unless another has taken it meanwhile. The present one is neither changed nor
   freed: whoever walks it ends his walk in it. */
void tss2_library_silence(void) {
    static char quiet[] = "TSS2_LOG=all+NONE";
    for (int tries = 0; tries < 8; tries++) {
        /* Who wants to see the messages has set it. */
        if (getenv("TSS2_LOG")) return;
        char **present = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
        size_t count = 0;
        while (present && present[count]) count++;
        char **longer = calloc(count + 2, sizeof *longer);
        if (!longer) return;
        longer[0] = quiet;
        if (count > 0) memcpy(longer + 1, present, count * sizeof *longer);
        if (__atomic_compare_exchange_n(&environ, &present, longer, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
        free(longer);
    }
}

#endif
