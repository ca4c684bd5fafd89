/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "connection.h"

#ifdef KEYCHAIN_TPM

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* The sonames contain the version of the interface that the headers describe. */
#define LIBRARY_tctildr "libtss2-tctildr.so.0"
#define LIBRARY_rc "libtss2-rc.so.0"
#define LIBRARY_mu "libtss2-mu.so.0"
#define LIBRARY_esys "libtss2-esys.so.0"

static bool find(const char *name, const char *function, void **place, char *text, size_t capacity) {
    /* If it is open already, dlopen only adds a reference. Never closed: abandoned threads may still run in it. */
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    *place = library ? dlsym(library, function) : NULL;
    if (*place) return true;
    const char *reason = dlerror();
    snprintf(text, capacity, "tpm2-tss cannot be used: %s", reason ? reason : function);
    return false;
}

static bool find_all(struct tss2_library *found, char *text, size_t capacity) {
#define FIND(library, function)                                                                                                \
    if (!find(LIBRARY_##library, #function, (void **)&found->function, text, capacity)) return false;
    TSS2_FUNCTIONS(FIND)
#undef FIND
    return true;
}

const struct tss2_library *tss2_library_open(char *text, size_t capacity) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct tss2_library library;
    static bool is_open;
    pthread_mutex_lock(&mutex);
    if (!is_open) is_open = find_all(&library, text, capacity);
    bool is_found = is_open;
    pthread_mutex_unlock(&mutex);
    return is_found ? &library : NULL;
}

#endif
