/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the header compiles by itself. The target ValetC implements its functions in Swift. */
#include "valet.h"
