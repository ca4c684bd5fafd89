/* SPDX-License-Identifier: Apache-2.0 */
#include "libsecret_client.h"

#include <dlfcn.h>
#include <stddef.h>

/* The public structure SecretSchema. Source: libsecret's documentation, "SecretSchema". */
typedef struct {
    const char *name;
    int flags;
    struct {
        const char *name;
        int type;
    } attributes[32];
    int reserved;
    void *reserved_pointers[7];
} schema;

static const schema key_schema = {.name = "keychain.Benchmark", .attributes = {{"key", 0}}};

/* Both argument lists end with name and value of each attribute, then NULL. */
static int (*store)(const schema *, const char *collection, const char *label, const char *value, void *cancellable, void **error, ...);
static char *(*lookup)(const schema *, void *cancellable, void **error, ...);
static void (*release)(char *value);

bool libsecret_client_load(void) {
    void *library = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
    *(void **)&store = dlsym(library, "secret_password_store_sync");
    *(void **)&lookup = dlsym(library, "secret_password_lookup_sync");
    *(void **)&release = dlsym(library, "secret_password_free");
    return store != NULL && lookup != NULL && release != NULL;
}

bool libsecret_client_store(const char *key, const char *value) {
    return store(&key_schema, "default", "benchmark", value, NULL, NULL, "key", key, NULL) != 0;
}

bool libsecret_client_lookup(const char *key) {
    char *value = lookup(&key_schema, NULL, NULL, "key", key, NULL);
    if (value == NULL) return false;
    release(value);
    return true;
}
