/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
void *calloc(size_t count, size_t size);
void free(void *memory);
