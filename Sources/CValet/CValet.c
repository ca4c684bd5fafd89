/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing to compile but the header by itself: its functions are implemented in Swift, in the target ValetC. */
#include "valet.h"
