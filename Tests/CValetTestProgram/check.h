/* SPDX-License-Identifier: Apache-2.0 */
/* Macros and functions for the cases. */
#ifndef CVALET_TEST_CHECK_H
#define CVALET_TEST_CHECK_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "valet.h"

extern atomic_int failed_checks;

/* Prints a line for a failure, and continues. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            atomic_fetch_add(&failed_checks, 1); \
            printf("%s:%d: false: %s\n", __FILE__, __LINE__, #condition); \
        } \
    } while (0)

#define CHECK_STATUS(call, expected) \
    do { \
        valet_status status_ = (call); \
        if (status_ != (expected)) { \
            atomic_fetch_add(&failed_checks, 1); \
            printf("%s:%d: %s is %d (%s), not %s\n", __FILE__, __LINE__, #call, status_, valet_status_text(status_), #expected); \
        } \
    } while (0)

/* A text with its length, as two arguments. */
#define TEXT(text) (text), strlen(text)
/* A text that ends at its first NUL, as two arguments. */
#define NUL(text) (text), valet_nul_terminated

valet *new_valet(const char *identifier);
/* Returns whether a valet has this value. */
bool has(valet *handle, const char *key, const char *value);

void check_arguments(void);
void check_values(void);
void check_keys(void);
void check_making(void);
void check_migrations(void);
void check_enclaves(void);
void check_wiping(void);
void check_forks(void);
void check_threads(void);
void check_growth(long rounds);
void plant_leak(void);
void plant_use_after_free(void);

#endif
