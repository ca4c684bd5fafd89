/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "user_shims.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls a lookup with a buffer for its record. Records are shorter than a kilobyte. A longer one, for which the lookup returns ERANGE, is
   tried with more memory, up to a mebibyte. Returns an errno value. */
static int look_up(int (*body)(void *context, char *buffer, size_t byte_count), void *context) {
    int error = ERANGE;
    for (size_t byte_count = 1024; error == ERANGE && byte_count <= 1 << 20; byte_count *= 4) {
        char *buffer = malloc(byte_count);
        if (!buffer) return ENOMEM;
        error = body(context, buffer, byte_count);
        free(buffer);
    }
    return error;
}

/* The result of a lookup in the form that this file returns: 1, 0 if there is no such record, or -1 with errno. */
static int result(int error, bool is_found) {
    if (error == 0) return is_found;
    errno = error;
    return -1;
}

struct user_lookup {
    uint32_t user;
    bool is_found;
    uint32_t group;
    char *home;
};

static int look_up_user(void *context, char *buffer, size_t byte_count) {
    struct user_lookup *lookup = context;
    struct passwd record, *found = NULL;
    int error = getpwuid_r(lookup->user, &record, buffer, byte_count, &found);
    if (error != 0 || !found) return error;
    lookup->is_found = true;
    lookup->group = found->pw_gid;
    if (found->pw_dir && found->pw_dir[0] == '/') lookup->home = strdup(found->pw_dir);
    return 0;
}

char *keychain_copy_home_of_effective_user(void) {
    struct user_lookup lookup = {.user = geteuid()};
    return look_up(look_up_user, &lookup) == 0 ? lookup.home : NULL;
}

int keychain_user_find_primary_group(uint32_t user, uint32_t *group) {
    struct user_lookup lookup = {.user = user};
    int error = look_up(look_up_user, &lookup);
    free(lookup.home);
    *group = lookup.group;
    return result(error, lookup.is_found);
}

struct name_lookup {
    const char *name;
    uint32_t user;
    bool is_found;
};

static int look_up_name(void *context, char *buffer, size_t byte_count) {
    struct name_lookup *lookup = context;
    struct passwd record, *found = NULL;
    int error = getpwnam_r(lookup->name, &record, buffer, byte_count, &found);
    if (error != 0 || !found) return error;
    lookup->is_found = true;
    lookup->user = found->pw_uid;
    return 0;
}

int keychain_user_find_number(const char *name, uint32_t *user) {
    struct name_lookup lookup = {.name = name};
    int error = look_up(look_up_name, &lookup);
    *user = lookup.user;
    return result(error, lookup.is_found);
}

struct user_name_lookup {
    uint32_t user;
    bool is_found;
    char *name;
    size_t capacity;
};

static int look_up_user_name(void *context, char *buffer, size_t byte_count) {
    struct user_name_lookup *lookup = context;
    struct passwd record, *found = NULL;
    int error = getpwuid_r(lookup->user, &record, buffer, byte_count, &found);
    if (error != 0 || !found) return error;
    size_t length = strlen(found->pw_name);
    if (length >= lookup->capacity) return ENAMETOOLONG;
    memcpy(lookup->name, found->pw_name, length + 1);
    lookup->is_found = true;
    return 0;
}

int keychain_user_find_name(uint32_t user, char *name, size_t capacity) {
    struct user_name_lookup lookup = {.user = user, .name = name, .capacity = capacity};
    int error = look_up(look_up_user_name, &lookup);
    return result(error, lookup.is_found);
}

struct group_lookup {
    uint32_t group;
    bool is_found, has_members;
    char *name;
    size_t capacity;
};

static int look_up_group(void *context, char *buffer, size_t byte_count) {
    struct group_lookup *lookup = context;
    struct group record, *found = NULL;
    int error = getgrgid_r(lookup->group, &record, buffer, byte_count, &found);
    if (error != 0 || !found) return error;
    size_t length = strlen(found->gr_name);
    if (length >= lookup->capacity) return ENAMETOOLONG;
    memcpy(lookup->name, found->gr_name, length + 1);
    lookup->is_found = true;
    lookup->has_members = found->gr_mem && found->gr_mem[0];
    return 0;
}

int keychain_group_find(uint32_t group, char *name, size_t capacity, bool *has_members) {
    struct group_lookup lookup = {.group = group, .name = name, .capacity = capacity};
    int error = look_up(look_up_group, &lookup);
    *has_members = lookup.has_members;
    return result(error, lookup.is_found);
}
