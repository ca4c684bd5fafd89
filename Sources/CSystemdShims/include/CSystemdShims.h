/* SPDX-License-Identifier: Apache-2.0 */
/* What the bridge of the Secret Service needs and Swift cannot import: the tables of sd-bus, which are made by macros, and the key agreement,
   which swift-crypto does not have. In a build without KEYCHAIN_SECRET_SERVICE nothing includes this header, because the
   headers and libraries that it needs may be missing. */
#ifndef KEYCHAIN_SYSTEMD_SHIMS_H
#define KEYCHAIN_SYSTEMD_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/* The paths of objects below another one. */
typedef struct keychain_bus_paths keychain_bus_paths;

/* The functions that serve the objects. A negative result is an error, which `error` describes. */
typedef struct {
    /* Whether there is an object that has the interface: 1 or 0. */
    int (*find)(const char *path, const char *interface, void *context, sd_bus_error *error);
    /* Performs a method. */
    int (*call)(sd_bus_message *message, void *context, sd_bus_error *error);
    /* Appends the value of a property. */
    int (*get)(
        const char *path, const char *interface, const char *property, sd_bus_message *reply, void *context, sd_bus_error *error);
    /* Reads the value of a property, and sets it. */
    int (*set)(
        const char *path, const char *interface, const char *property, sd_bus_message *value, void *context, sd_bus_error *error);
    /* Adds the objects directly below a path. */
    void (*list)(const char *path, void *context, keychain_bus_paths *paths);
    /* Notes that a connection has left the bus. */
    void (*leave)(const char *name, void *context);
} keychain_bus_handlers;

/* Serves the interfaces of the Secret Service at /org/freedesktop/secrets and everywhere below, and those of the portal at
   /org/freedesktop/portal/desktop. No object is registered. `handlers` and
   `context` must outlive the bus. */
int keychain_bus_serve(sd_bus *bus, const keychain_bus_handlers *handlers, void *context);

void keychain_bus_add_path(keychain_bus_paths *paths, const char *path);

/* Waits until the bus has work to do, until the event descriptor is set, which is then cleared, or for so many milliseconds; negative: without
   limit. */
int keychain_bus_wait(sd_bus *bus, int event, int64_t milliseconds);

#define KEYCHAIN_AGREEMENT_BYTE_COUNT 128

/* Key agreement in the second Oakley group (RFC 2409, section 6.2). All numbers are unsigned, big-endian, and of the full width. */

/* Makes a pair of keys. Returns false without memory. */
bool keychain_agreement_make_keys(
    uint8_t private_key[KEYCHAIN_AGREEMENT_BYTE_COUNT], uint8_t public_key[KEYCHAIN_AGREEMENT_BYTE_COUNT]);

/* Computes the shared secret. Returns false for a public key of which every participant knows the result: 0, 1, p - 1, and every number that is
   not less than p. */
bool keychain_agreement_secret(
    const uint8_t private_key[KEYCHAIN_AGREEMENT_BYTE_COUNT], const uint8_t *public_key, size_t public_key_byte_count,
    uint8_t secret[KEYCHAIN_AGREEMENT_BYTE_COUNT]);

#endif
