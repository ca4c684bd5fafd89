/* SPDX-License-Identifier: Apache-2.0 */
#ifdef KEYCHAIN_SECRET_SERVICE
#include "CSystemdShims.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* Sources: Secret Service API Draft, version 0.2; org.freedesktop.impl.portal.Secret.xml and org.freedesktop.impl.portal.Request.xml of
   xdg-desktop-portal; sd_bus_add_fallback_vtable(3). */

static const char root[] = "/org/freedesktop/secrets";
static const char portal_root[] = "/org/freedesktop/portal/desktop";

typedef struct {
    const keychain_bus_handlers *handlers;
    void *context;
} server;

struct keychain_bus_paths {
    char **items;
    size_t count;
};

static int find(sd_bus *bus, const char *path, const char *interface, void *data, void **found, sd_bus_error *error) {
    (void)bus;
    server *server = data;
    *found = server;
    return server->handlers->find(path, interface, server->context, error);
}

static int call(sd_bus_message *message, void *data, sd_bus_error *error) {
    server *server = data;
    return server->handlers->call(message, server->context, error);
}

static int get(
    sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply, void *data, sd_bus_error *error) {
    (void)bus;
    server *server = data;
    return server->handlers->get(path, interface, property, reply, server->context, error);
}

static int set(
    sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *value, void *data, sd_bus_error *error) {
    (void)bus;
    server *server = data;
    return server->handlers->set(path, interface, property, value, server->context, error);
}

#define PROPERTY(name, type) SD_BUS_PROPERTY(name, type, get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)
#define CONSTANT(name, type) SD_BUS_PROPERTY(name, type, get, 0, 0)
#define WRITABLE(name, type) SD_BUS_WRITABLE_PROPERTY(name, type, get, set, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)

/* Every program on the bus of a session belongs to its user, so no method is privileged. */
static const sd_bus_vtable service_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("OpenSession", SD_BUS_ARGS("s", algorithm, "v", input), SD_BUS_ARGS("v", output, "o", session), call, 0),
    SD_BUS_METHOD_WITH_ARGS("CreateCollection", SD_BUS_ARGS("a{sv}", properties, "s", alias), SD_BUS_ARGS("o", collection, "o", prompt), call, 0),
    SD_BUS_METHOD_WITH_ARGS("SearchItems", SD_BUS_ARGS("a{ss}", attributes), SD_BUS_ARGS("ao", unlocked, "ao", locked), call, 0),
    SD_BUS_METHOD_WITH_ARGS("Unlock", SD_BUS_ARGS("ao", objects), SD_BUS_ARGS("ao", unlocked, "o", prompt), call, 0),
    SD_BUS_METHOD_WITH_ARGS("Lock", SD_BUS_ARGS("ao", objects), SD_BUS_ARGS("ao", locked, "o", prompt), call, 0),
    SD_BUS_METHOD_WITH_ARGS("GetSecrets", SD_BUS_ARGS("ao", items, "o", session), SD_BUS_ARGS("a{o(oayays)}", secrets), call, SD_BUS_VTABLE_SENSITIVE),
    SD_BUS_METHOD_WITH_ARGS("ReadAlias", SD_BUS_ARGS("s", name), SD_BUS_ARGS("o", collection), call, 0),
    SD_BUS_METHOD_WITH_ARGS("SetAlias", SD_BUS_ARGS("s", name, "o", collection), SD_BUS_NO_ARGS, call, 0),
    PROPERTY("Collections", "ao"),
    SD_BUS_SIGNAL_WITH_ARGS("CollectionCreated", SD_BUS_ARGS("o", collection), 0),
    SD_BUS_SIGNAL_WITH_ARGS("CollectionDeleted", SD_BUS_ARGS("o", collection), 0),
    SD_BUS_SIGNAL_WITH_ARGS("CollectionChanged", SD_BUS_ARGS("o", collection), 0),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable collection_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Delete", SD_BUS_NO_ARGS, SD_BUS_ARGS("o", prompt), call, 0),
    SD_BUS_METHOD_WITH_ARGS("SearchItems", SD_BUS_ARGS("a{ss}", attributes), SD_BUS_ARGS("ao", results), call, 0),
    SD_BUS_METHOD_WITH_ARGS("CreateItem", SD_BUS_ARGS("a{sv}", properties, "(oayays)", secret, "b", replace), SD_BUS_ARGS("o", item, "o", prompt), call, SD_BUS_VTABLE_SENSITIVE),
    PROPERTY("Items", "ao"),
    WRITABLE("Label", "s"),
    PROPERTY("Locked", "b"),
    CONSTANT("Created", "t"),
    PROPERTY("Modified", "t"),
    SD_BUS_SIGNAL_WITH_ARGS("ItemCreated", SD_BUS_ARGS("o", item), 0),
    SD_BUS_SIGNAL_WITH_ARGS("ItemDeleted", SD_BUS_ARGS("o", item), 0),
    SD_BUS_SIGNAL_WITH_ARGS("ItemChanged", SD_BUS_ARGS("o", item), 0),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable item_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Delete", SD_BUS_NO_ARGS, SD_BUS_ARGS("o", prompt), call, 0),
    SD_BUS_METHOD_WITH_ARGS("GetSecret", SD_BUS_ARGS("o", session), SD_BUS_ARGS("(oayays)", secret), call, SD_BUS_VTABLE_SENSITIVE),
    SD_BUS_METHOD_WITH_ARGS("SetSecret", SD_BUS_ARGS("(oayays)", secret), SD_BUS_NO_ARGS, call, SD_BUS_VTABLE_SENSITIVE),
    PROPERTY("Locked", "b"),
    WRITABLE("Attributes", "a{ss}"),
    WRITABLE("Label", "s"),
    WRITABLE("Type", "s"),
    CONSTANT("Created", "t"),
    PROPERTY("Modified", "t"),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable session_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Close", SD_BUS_NO_ARGS, SD_BUS_NO_ARGS, call, 0),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable prompt_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Prompt", SD_BUS_ARGS("s", window), SD_BUS_NO_ARGS, call, 0),
    SD_BUS_METHOD_WITH_ARGS("Dismiss", SD_BUS_NO_ARGS, SD_BUS_NO_ARGS, call, 0),
    SD_BUS_SIGNAL_WITH_ARGS("Completed", SD_BUS_ARGS("b", dismissed, "v", result), 0),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable portal_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("RetrieveSecret", SD_BUS_ARGS("o", handle, "s", app_id, "h", fd, "a{sv}", options), SD_BUS_ARGS("u", response, "a{sv}", results), call, 0),
    CONSTANT("version", "u"),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable portal_request_table[] = {
    SD_BUS_VTABLE_START(SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Close", SD_BUS_NO_ARGS, SD_BUS_NO_ARGS, call, 0),
    SD_BUS_VTABLE_END,
};

static const struct {
    const char *root;
    const char *interface;
    const sd_bus_vtable *table;
} tables[] = {
    {root, "org.freedesktop.Secret.Service", service_table},
    {root, "org.freedesktop.Secret.Collection", collection_table},
    {root, "org.freedesktop.Secret.Item", item_table},
    {root, "org.freedesktop.Secret.Session", session_table},
    {root, "org.freedesktop.Secret.Prompt", prompt_table},
    {portal_root, "org.freedesktop.impl.portal.Secret", portal_table},
    {portal_root, "org.freedesktop.impl.portal.Request", portal_request_table},
};

static int enumerate(sd_bus *bus, const char *path, void *data, char ***nodes, sd_bus_error *error) {
    (void)bus;
    (void)error;
    server *server = data;
    keychain_bus_paths paths = {NULL, 0};
    server->handlers->list(path, server->context, &paths);
    /* sd-bus frees the strings and the array. */
    *nodes = paths.items;
    return 0;
}

void keychain_bus_add_path(keychain_bus_paths *paths, const char *path) {
    char *copy = strdup(path);
    char **items = copy == NULL ? NULL : realloc(paths->items, (paths->count + 2) * sizeof *items);
    if (items == NULL) {
        free(copy);
        return;
    }
    items[paths->count] = copy;
    items[paths->count + 1] = NULL;
    paths->items = items;
    paths->count++;
}

static int note_owner(sd_bus_message *message, void *data, sd_bus_error *error) {
    (void)error;
    server *server = data;
    const char *name, *former, *next;
    if (sd_bus_message_read(message, "sss", &name, &former, &next) >= 0 && next[0] == 0) {
        server->handlers->leave(name, server->context);
    }
    return 0;
}

int keychain_bus_serve(sd_bus *bus, const keychain_bus_handlers *handlers, void *context) {
    server *data = calloc(1, sizeof *data);
    if (data == NULL) return -ENOMEM;
    data->handlers = handlers;
    data->context = context;
    int result = 0;
    for (size_t index = 0; result >= 0 && index < sizeof tables / sizeof tables[0]; index++) {
        result = sd_bus_add_fallback_vtable(bus, NULL, tables[index].root, tables[index].interface, tables[index].table, find, data);
    }
    if (result >= 0) result = sd_bus_add_node_enumerator(bus, NULL, root, enumerate, data);
    if (result >= 0) {
        /* A name that begins with a colon is that of a connection, which never has another owner. */
        result = sd_bus_add_match(
            bus, NULL,
            "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',"
            "member='NameOwnerChanged',arg2=''",
            note_owner, data);
    }
    return result;
}

int keychain_bus_wait(sd_bus *bus, int event, int64_t milliseconds) {
    int events = sd_bus_get_events(bus);
    if (events < 0) return events;
    int own = sd_bus_get_fd(bus);
    if (own < 0) return own;
    struct pollfd requests[] = {{.fd = own, .events = (short)events}, {.fd = event, .events = POLLIN}};
    int timeout = milliseconds < 0 || milliseconds > 3600000 ? -1 : (int)milliseconds;
    int result = poll(requests, 2, timeout);
    if (result < 0) return errno == EINTR ? 0 : -errno;
    eventfd_t count;
    if (requests[1].revents != 0) (void)eventfd_read(event, &count);
    return 0;
}
#endif
