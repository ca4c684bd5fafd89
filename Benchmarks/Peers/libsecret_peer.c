/* SPDX-License-Identifier: Apache-2.0 */
/* libsecret_peer ITEMS READS WRITES LISTINGS
   Fills the default collection with ITEMS items and measures libsecret's synchronous calls on it.

   The secret is read from standard input. Writes lines of an operation and nanoseconds, and at last the peak memory of this
   process and of the daemon, in KiB. */
#include <libsecret/secret.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The attributes, and no schema name beside them: what python-keyring and secret-tool look for too. */
static const SecretSchema schema = {
    .name = "keychain.Benchmark",
    .flags = SECRET_SCHEMA_DONT_MATCH_NAME,
    .attributes = {{"service", SECRET_SCHEMA_ATTRIBUTE_STRING}, {"username", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

static char secret[256];

static void fail(const char *what, GError *error) {
    fprintf(stderr, "%s: %s\n", what, error != NULL ? error->message : "no result");
    exit(1);
}

static void store(const char *name) {
    GError *error = NULL;
    if (!secret_password_store_sync(
            &schema, SECRET_COLLECTION_DEFAULT, "benchmark", secret, NULL, &error, "service", "benchmark", "username", name, NULL))
        fail("store", error);
}

static void get(const char *name) {
    GError *error = NULL;
    char *value = secret_password_lookup_sync(&schema, NULL, &error, "service", "benchmark", "username", name, NULL);
    if (value == NULL || strcmp(value, secret) != 0) fail("lookup", error);
    secret_password_free(value);
}

/* A search that asks for no secret. */
static void contains(const char *name) {
    GError *error = NULL;
    GList *found =
        secret_password_search_sync(&schema, SECRET_SEARCH_NONE, NULL, &error, "service", "benchmark", "username", name, NULL);
    if (found == NULL) fail("search", error);
    g_list_free_full(found, g_object_unref);
}

static void remove_item(const char *name) {
    GError *error = NULL;
    if (!secret_password_clear_sync(&schema, NULL, &error, "service", "benchmark", "username", name, NULL)) fail("clear", error);
}

static void list(const char *count) {
    GError *error = NULL;
    GList *found = secret_password_search_sync(&schema, SECRET_SEARCH_ALL, NULL, &error, "service", "benchmark", NULL);
    if (g_list_length(found) < (guint)atoi(count)) fail("list", error);
    for (GList *item = found; item != NULL; item = item->next) {
        GHashTable *attributes = secret_retrievable_get_attributes(item->data);
        if (g_hash_table_lookup(attributes, "username") == NULL) fail("list", NULL);
        g_hash_table_unref(attributes);
    }
    g_list_free_full(found, g_object_unref);
}

static void measure(const char *operation, void (*run)(const char *), const char *argument) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    run(argument);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s %lld\n", operation, (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec));
}

static void print_peak_memory(const char *name, unsigned process) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%u/status", process);
    FILE *file = fopen(path, "r");
    long kibibytes;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmHWM: %ld", &kibibytes) == 1) printf("%s %ld\n", name, kibibytes);
    }
    if (file != NULL) fclose(file);
}

/* The process that answers for the Secret Service; 0 when the bus does not say. */
static unsigned daemon_process(void) {
    unsigned process = 0;
    GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, NULL);
    if (bus == NULL) return 0;
    GVariant *answer = g_dbus_connection_call_sync(
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixProcessID",
        g_variant_new("(s)", "org.freedesktop.secrets"), G_VARIANT_TYPE("(u)"), G_DBUS_CALL_FLAGS_NONE, 5000, NULL, NULL);
    if (answer != NULL) {
        g_variant_get(answer, "(u)", &process);
        g_variant_unref(answer);
    }
    g_object_unref(bus);
    return process;
}

int main(int count, char **arguments) {
    if (count != 5 || fgets(secret, sizeof secret, stdin) == NULL) return 2;
    secret[strcspn(secret, "\n")] = 0;
    int items = atoi(arguments[1]), reads = atoi(arguments[2]), writes = atoi(arguments[3]), listings = atoi(arguments[4]);
    if (items < 1) return 2;
    char name[64], new_name[64];
    for (int index = 0; index < items; index++) {
        snprintf(name, sizeof name, "account-%d", index);
        store(name);
    }
    /* Nothing is printed of the first fifth, which only warms caches up. */
    for (int index = -(reads / 5); index < reads; index++) {
        snprintf(name, sizeof name, "account-%d", (index + reads) * 31 % items);
        if (index < 0) {
            get(name);
            contains(name);
        } else {
            measure("get", get, name);
            measure("contains", contains, name);
        }
    }
    for (int index = 0; index < writes; index++) {
        snprintf(name, sizeof name, "account-%d", index * 31 % items);
        snprintf(new_name, sizeof new_name, "new-%d", index);
        measure("setNew", store, new_name);
        measure("overwrite", store, name);
        measure("remove", remove_item, new_name);
    }
    for (int index = 0; index < listings; index++) measure("allKeys", list, arguments[1]);
    print_peak_memory("memory", (unsigned)getpid());
    unsigned process = daemon_process();
    if (process != 0) print_peak_memory("daemon-memory", process);
    secret_password_wipe(secret);
    return 0;
}
