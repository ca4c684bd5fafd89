/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
size_t strlen(const char *text);
