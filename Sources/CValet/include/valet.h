/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file valet.h
 * Valet for C and other languages that can call C: stores secrets in the keychain, as values under keys.
 *
 *     valet *vault = NULL;
 *     valet_create("Druidia", valet_nul_terminated, valet_accessibility_when_unlocked, &vault);
 *     valet_set_string(vault, "Skroob", valet_nul_terminated, "12345", valet_nul_terminated);
 *
 *     char *secret = NULL;
 *     if (valet_get_string(vault, "Skroob", valet_nul_terminated, &secret, NULL) == valet_success) puts(secret);
 *     valet_buffer_free(secret);
 *     valet_free(vault);
 *
 * The following rules hold for every function. The comment of a function states only what is specific to it.
 *
 * **Status.** A function that can fail returns a `valet_status`; 0 is success. A function that fails changes nothing: a value stored before is
 * still stored, and a migration copies either all items or none. On failure, every result that is returned through a pointer is NULL, 0 or false.
 *
 * **Text and lengths.** Keys, identifiers, prompts and strings are UTF-8, passed as a pointer and a length in bytes, without a terminating NUL.
 * With the length `valet_nul_terminated`, the text ends at its first NUL. With any other length, a NUL is part of the text. Text that is not
 * UTF-8 is refused with `valet_error_not_utf8`. Two texts are equal only if their bytes are equal.
 *
 * **NULL.** A NULL pointer with the length 0 is an empty text or value. A NULL pointer with any other length, including
 * `valet_nul_terminated`, is `valet_error_null_argument`. So is a NULL handle, a NULL callback, and a NULL pointer for a result, unless the
 * function allows it. The context of a callback may be NULL. Every function that frees does nothing for NULL.
 *
 * **Wrong lengths.** A length of more than half the address space, or `valet_nul_terminated` for a value that is not text, is
 * `valet_error_invalid_length`. A length that is greater than the memory behind the pointer cannot be detected: the behavior is undefined.
 *
 * **Ownership.** Arguments belong to the caller, and the library copies what it keeps. The caller owns handles and frees each one once, with the
 * function of its type. A handle of another type is refused with `valet_error_wrong_handle`. The caller owns the buffers that functions return,
 * and passes each to `valet_buffer_free()`, which wipes it first. A buffer is followed by a NUL that its length does not include. The arguments of
 * a callback belong to the library and are valid until the callback returns.
 *
 * **Secrets in memory.** Buffers are wiped when they are freed. Reading and storing also make copies that are not all wiped, so a memory dump of
 * the process may contain a secret after its buffer was freed.
 *
 * **Programs.** Values belong to a program: to its application identifier, which without entitlements is the name of its executable file. For a
 * script, that is the name of the interpreter, so all scripts share their values. KEYCHAIN_ENTITLEMENTS names a file with another identifier.
 *
 * **Threads.** Every function may be called from any thread at any time, also with the same handle. The only exception: do not free a handle or
 * buffer while another thread uses it. A call reads from or writes to disk; a call that prompts waits for the person. If a process that has
 * used the keychain calls fork(), every function that returns a status returns `valet_error_could_not_access_keychain` in the child until it
 * calls exec(), whatever other threads of the parent were doing. The library is never unloaded: dlclose() has no effect. pthread_cancel() takes
 * effect only after a call has returned. A thread needs a stack of at least 256 KiB.
 *
 * **Reasons.** `valet_failure_reason()` returns what a status does not contain, such as why the keychain cannot be accessed. The library writes only
 * warnings to standard error, one line each, for example about an entitlements file that cannot be used. Neither contains a secret, a key, or a
 * value.
 *
 * **Callbacks.** A callback runs in the calling thread, before the function returns and while no lock is held. It may call any function of this
 * header, except that it must not free a handle that the outer call uses. It must return: longjmp and exceptions must not leave it.
 */
#ifndef VALET_H
#define VALET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ---- */

/** The version of the interface in this header. It increases with each addition; existing declarations stay compatible. */
enum { valet_interface_version = 2 };

/**
 * Returns the version of the interface of the library. A program requires at least the `valet_interface_version` it was compiled with.
 *
 * @return The version, 1 or more.
 */
int32_t valet_library_interface_version(void);

/**
 * Returns the version of the project for people to read, such as "1.2.3".
 *
 * @return A static NUL-terminated text; never NULL. Do not free it.
 */
const char *valet_version(void);

/* ---- Status ---- */

/** The result of a call: one of the constants below, or the status that a callback of type `valet_compact_map` returned. */
typedef int32_t valet_status;

enum {
    /** Success. */
    valet_success = 0,

    /* 1 to 99: the keychain. Each is the raw value of Swift's KeychainError, plus 1. */

    /** The keychain could not be accessed: it is locked, damaged, missing its key, or refused the call. The value may exist. */
    valet_error_could_not_access_keychain = 1,
    /** Authentication failed or was canceled. */
    valet_error_user_cancelled = 2,
    /** No value exists for the key, or text was requested and the value is not UTF-8. */
    valet_error_item_not_found = 3,
    /** The program's entitlements do not list the access group. */
    valet_error_missing_entitlement = 4,
    /** The key is empty. */
    valet_error_empty_key = 5,
    /** The value is empty. */
    valet_error_empty_value = 6,

    /* 101 to 199: migrations. Each is the raw value of Swift's MigrationError, plus 101. */

    /** The query is empty, is not about generic passwords, or contains an entry that a migration sets itself. */
    valet_error_invalid_query = 101,
    /** The account of an item is not a usable key, or is empty. */
    valet_error_key_to_migrate_invalid = 102,
    /** An item's value is empty. */
    valet_error_data_to_migrate_invalid = 103,
    /** Two items have the same key. */
    valet_error_duplicate_key_to_migrate = 104,
    /** A key already exists in the destination valet. */
    valet_error_key_to_migrate_already_exists = 105,
    /** An original could not be removed, or was changed during the migration. The migration was undone. */
    valet_error_removal_failed = 106,

    /* 201 to 299: arguments. The keychain was not accessed, except with 208 and 209, which are about a value that was read. */

    /** A required pointer is NULL. */
    valet_error_null_argument = 201,
    /** A length is more than half the address space, or `valet_nul_terminated` for a value that is not text. */
    valet_error_invalid_length = 202,
    /** A text is not UTF-8. */
    valet_error_not_utf8 = 203,
    /** A constant is unknown. */
    valet_error_unknown_constant = 204,
    /** The handle is of another type. */
    valet_error_wrong_handle = 205,
    /** The identifier, the group, or an App ID prefix is empty. */
    valet_error_empty_identifier = 206,
    /** The group prefix is not supported on this platform. */
    valet_error_invalid_group_prefix = 207,
    /** The text contains a NUL, and the caller passed no pointer for its length. */
    valet_error_embedded_nul = 208,
    /** Out of memory for the result. */
    valet_error_no_memory = 209,

    /** The first status for the callbacks of a program. The library itself never returns it or a greater one. */
    valet_status_first_of_caller = 1000
};

/**
 * Describes a status in English, for a log or an error message. The text contains no key and no value.
 *
 * @param status Any number.
 * @return A static NUL-terminated text; never NULL. Do not free it. For an unknown number it is "unknown status".
 */
const char *valet_status_text(valet_status status);

/**
 * Describes why the last call of this thread failed, in English, for a log or an error message: for example which file cannot be used and why. The
 * text can name files and access groups. It contains no key and no value. Since interface version 2.
 *
 * @return A NUL-terminated text, which is valid until another call of this thread fails; do not free it. NULL if no call of this thread has failed, if
 * there is nothing to add to the status, and in a process that was forked from one that uses the keychain.
 */
const char *valet_failure_reason(void);

/* ---- Text ---- */

/** The length of a text that ends at its first NUL. */
#define valet_nul_terminated ((size_t)-1)

/* ---- Buffers ---- */

/**
 * Wipes and frees a buffer that a function of this header returned. The library knows its size.
 *
 * @param buffer The buffer, or NULL. Freeing a buffer twice is undefined behavior, as with free().
 */
void valet_buffer_free(void *buffer);

/* ---- Valets ---- */

/**
 * A valet: stores the values of one sandbox. Its parameters decide which programs and devices have access, and separate its values from those of
 * other valets.
 *
 * Two handles for the same arguments may be the same pointer. Free each one once nevertheless.
 */
typedef struct valet valet;

/** When values can be read and written. The numbers are the raw values of Swift's Accessibility. */
typedef int32_t valet_accessibility;

enum {
    /** While the device is unlocked. */
    valet_accessibility_when_unlocked = 1,
    /** From the first unlock after a start until the device is turned off. */
    valet_accessibility_after_first_unlock = 2,
    /** While the device is unlocked and only while a passcode is set; never leaves the device. */
    valet_accessibility_when_passcode_set_this_device_only = 4,
    /** While the device is unlocked; never leaves the device. */
    valet_accessibility_when_unlocked_this_device_only = 5,
    /** From the first unlock after a start until the device is turned off; never leaves the device. */
    valet_accessibility_after_first_unlock_this_device_only = 6
};

/** When synchronizable values can be read and written. The numbers are the raw values of Swift's CloudAccessibility. */
typedef int32_t valet_cloud_accessibility;

enum {
    /** While the device is unlocked. */
    valet_cloud_accessibility_when_unlocked = 1,
    /** From the first unlock after a start until the device is turned off. */
    valet_cloud_accessibility_after_first_unlock = 2
};

/** The part before the first dot in the full name of an access group. */
typedef int32_t valet_group_prefix;

enum {
    /** An App ID prefix: the program's entitlements list the group under `keychain-access-groups`. */
    valet_group_prefix_app_id = 1,
    /** "group" (on macOS: the App ID prefix): the entitlements list the group under `com.apple.security.application-groups`. */
    valet_group_prefix_application_group = 2
};

/**
 * Creates a valet for this program on this device.
 *
 * @param identifier The name of the valet; not empty.
 * @param accessibility When the values can be read and written.
 * @param result Receives the handle, to be freed with `valet_free()`; NULL on failure.
 * @return `valet_success`, `valet_error_empty_identifier`, `valet_error_unknown_constant`, or an error of arguments (see the top of this header).
 *     The keychain is not accessed; `valet_can_access()` shows whether it can be.
 */
valet_status valet_create(const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/**
 * Creates a valet whose values are marked as synchronizable with the other devices of the same person.
 *
 * Otherwise like `valet_create()`.
 */
valet_status valet_create_icloud(
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a valet shared by all programs that have an access group, `prefix.group`.
 *
 * @param prefix_kind The kind of prefix.
 * @param prefix The prefix without the dot; not empty.
 * @param group The group without its prefix; not empty. Unless the entitlements list the group, every use returns
 *     `valet_error_missing_entitlement`.
 * @param identifier Separates several valets of one group; NULL with the length 0, or empty, for none.
 * @param accessibility When the values can be read and written.
 * @param result Receives the handle, to be freed with `valet_free()`; NULL on failure.
 * @return As `valet_create()`, or `valet_error_invalid_group_prefix`.
 */
valet_status valet_create_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/** Creates a shared valet with synchronizable values: see `valet_create_shared()` and `valet_create_icloud()`. */
valet_status valet_create_icloud_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a valet whose items have exactly the identifier as their service, for names that are shown to people.
 *
 * The identifier must be unique, because nothing else separates the valet from others. Otherwise like `valet_create()`.
 */
valet_status valet_create_explicit(
    const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/** Creates such a valet with synchronizable values: see `valet_create_explicit()` and `valet_create_icloud()`. */
valet_status valet_create_icloud_explicit(
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a shared valet whose items have exactly the group, without its prefix, as their service.
 *
 * Otherwise like `valet_create_shared()`, without an identifier.
 */
valet_status valet_create_explicit_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    valet_accessibility accessibility, valet **result);

/** Creates such a valet with synchronizable values: see `valet_create_explicit_shared()` and `valet_create_icloud()`. */
valet_status valet_create_icloud_explicit_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    valet_cloud_accessibility accessibility, valet **result);

/**
 * Frees a handle. The values stay in the keychain.
 *
 * @param handle The handle, or NULL.
 */
void valet_free(valet *handle);

/**
 * Returns whether two valets have the same values.
 *
 * @param first,second Handles. NULL equals only NULL. A handle of another type equals nothing.
 * @return True if each valet reads what the other stores.
 */
bool valet_is_equal(valet *first, valet *second);

/**
 * Returns a hash value. It is equal for equal valets, and differs between runs of a program.
 *
 * @param handle The handle. The hash is 0 for NULL and for a handle of another type.
 */
uint64_t valet_hash(valet *handle);

/**
 * Describes a valet for people to read: its identifier, accessibility and kind. The text contains no key and no value.
 *
 * @param text Receives the text, to be freed with `valet_buffer_free()`; NULL on failure.
 * @param text_length Receives the length in bytes. May be NULL; then text that contains a NUL is `valet_error_embedded_nul`.
 * @return `valet_success`, or an error of arguments (see the top of this header).
 */
valet_status valet_describe(valet *handle, char **text, size_t *text_length);

/**
 * Returns whether values can be stored and read now. Writes and reads an item of its own, without a prompt.
 *
 * @param handle The handle. The result is false for NULL and for a handle of another type.
 * @return True if the keychain is accessible.
 */
bool valet_can_access(valet *handle);

/**
 * Stores bytes under a key. Replaces an existing value atomically; readers see either the old or the new value.
 *
 * @param key The key. If empty: `valet_error_empty_key`.
 * @param value The value; any bytes, on Linux at most 64 MiB. If empty: `valet_error_empty_value`.
 * @param value_length The number of bytes. `valet_nul_terminated` is `valet_error_invalid_length`.
 * @return `valet_success`, an error of the keychain (1 to 99), or an error of arguments (see the top of this header).
 */
valet_status valet_set(valet *handle, const char *key, size_t key_length, const void *value, size_t value_length);

/**
 * Stores text under a key, as UTF-8. Otherwise like `valet_set()`.
 *
 * @param string The text. If it is not UTF-8: `valet_error_not_utf8`.
 */
valet_status valet_set_string(valet *handle, const char *key, size_t key_length, const char *string, size_t string_length);

/**
 * Reads the bytes stored under a key.
 *
 * @param key The key. If empty: `valet_error_empty_key`.
 * @param value Receives the value, to be freed with `valet_buffer_free()`; NULL on failure.
 * @param value_length Receives the number of bytes. Must not be NULL.
 * @return `valet_success`, `valet_error_item_not_found` if no value exists, another error of the keychain (1 to 99), or an error of arguments
 *     (see the top of this header).
 */
valet_status valet_get(valet *handle, const char *key, size_t key_length, uint8_t **value, size_t *value_length);

/**
 * Reads the text stored under a key.
 *
 * @param string Receives the NUL-terminated text, to be freed with `valet_buffer_free()`; NULL on failure.
 * @param string_length Receives the length in bytes. May be NULL; then text that contains a NUL is `valet_error_embedded_nul`.
 * @return As `valet_get()`. A value that is not UTF-8 is `valet_error_item_not_found`.
 */
valet_status valet_get_string(valet *handle, const char *key, size_t key_length, char **string, size_t *string_length);

/**
 * Checks whether a value exists under a key, without reading it.
 *
 * @param result Receives true if the value exists; false if it does not exist or the call failed.
 * @return `valet_success` if the lookup could be performed; otherwise as `valet_get()`.
 */
valet_status valet_contains(valet *handle, const char *key, size_t key_length, bool *result);

/**
 * Removes the value under a key. Succeeds if no value exists.
 *
 * @param key The key. If empty: `valet_error_empty_key`.
 * @return As `valet_set()`.
 */
valet_status valet_remove(valet *handle, const char *key, size_t key_length);

/** Removes all values, or none on failure. Succeeds if no value exists. */
valet_status valet_remove_all(valet *handle);

/**
 * A callback for a key.
 *
 * @param context The context that the caller passed.
 * @param key The NUL-terminated key, valid until the callback returns.
 * @param key_length The length in bytes.
 * @return True to continue with the next key, false to stop.
 */
typedef bool (*valet_key_callback)(void *context, const char *key, size_t key_length);

/**
 * Calls a callback for the key of each value, in the order of their bytes. All keys are read before the first call, so the callback may store and
 * remove values.
 *
 * @param callback The callback.
 * @param context The context that is passed to the callback.
 * @return `valet_success`, also if there are no keys or the callback stopped. An error of the keychain (1 to 99) is returned before the first call.
 */
valet_status valet_all_keys(valet *handle, valet_key_callback callback, void *context);

/* ---- Migration ---- */

/** The type of a value. */
typedef int32_t valet_value_type;

enum {
    /** UTF-8: `bytes` and `length`, which may be `valet_nul_terminated` in an argument. */
    valet_value_text = 1,
    /** Any bytes: `bytes` and `length`. */
    valet_value_bytes = 2,
    /** An integer: `number`. */
    valet_value_number = 3,
    /** A Boolean value: `number`, 0 for false and any other value for true. */
    valet_value_boolean = 4,
    /** A date: `seconds` since 1970-01-01T00:00:00Z. */
    valet_value_date = 5
};

/** An entry of a query for SecItemCopyMatching: an attribute and the value that items must have, or an option of the search. */
typedef struct {
    /** The NUL-terminated name of the attribute: a constant below, or the value of another `kSec…` constant of Apple. */
    const char *name;
    /** Which of the following members is used. The others are ignored. */
    valet_value_type type;
    /** For text and bytes. */
    const void *bytes;
    /** For text and bytes. */
    size_t length;
    /** For a number or a Boolean value. */
    int64_t number;
    /** For a date. */
    double seconds;
} valet_query_entry;

/* Names of entries. A query that is not valid for a migration is valet_error_invalid_query; one that the keychain refuses is
   valet_error_could_not_access_keychain. A query cannot contain an LAContext or an access control. */

/** kSecClass: text, and it must be there, with the value `valet_class_generic_password`. */
#define valet_attribute_class "class"
/** kSecClassGenericPassword. */
#define valet_class_generic_password "genp"
/** kSecAttrService: text. */
#define valet_attribute_service "svce"
/** kSecAttrAccount, the key: text or bytes. */
#define valet_attribute_account "acct"
/** kSecAttrAccessGroup: text. */
#define valet_attribute_access_group "agrp"
/** kSecAttrAccessible: text, such as "ak" (when unlocked) or "ck" (after first unlock). */
#define valet_attribute_accessible "pdmn"
/** kSecAttrSynchronizable: a boolean, or the text `valet_synchronizable_any`. */
#define valet_attribute_synchronizable "sync"
/** kSecAttrSynchronizableAny. */
#define valet_synchronizable_any "syna"
/** kSecAttrGeneric: bytes. */
#define valet_attribute_generic "gena"
/** kSecAttrLabel: text. */
#define valet_attribute_label "labl"
/** kSecAttrDescription: text. */
#define valet_attribute_description "desc"
/** kSecAttrComment: text. */
#define valet_attribute_comment "icmt"
/** kSecAttrCreator: a number. */
#define valet_attribute_creator "crtr"
/** kSecAttrType: a number. */
#define valet_attribute_type "type"
/** kSecUseDataProtectionKeychain, of use on macOS alone: a boolean. */
#define valet_option_use_data_protection_keychain "nleg"

/**
 * Copies existing items of the keychain to a valet: all that match, or none.
 *
 * All items are checked before the first write, and all changes are one transaction. For items with access control one prompt is shown.
 *
 * @param destination The valet that receives the items.
 * @param query The query. An empty query or a duplicate name is `valet_error_invalid_query`.
 * @param query_count The number of entries. The pointer may be NULL if it is 0.
 * @param remove_on_completion Whether the originals are removed.
 * @return `valet_success`, `valet_error_item_not_found` if no item matches, an error of migrations (101 to 199) or of the keychain (1 to 99), or
 *     an error of arguments (see the top of this header).
 */
valet_status valet_migrate_matching(
    valet *destination, const valet_query_entry *query, size_t query_count, bool remove_on_completion);

/**
 * Copies the values of another valet to this one: all of them, or none.
 *
 * @param destination The valet that receives the values.
 * @param source The valet with the values.
 * @param remove_on_completion Whether the originals are removed.
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from(valet *destination, valet *source, bool remove_on_completion);

/** A key and a value during a migration. Its pointers are valid until the callback returns. */
typedef struct {
    /** The type of the key: `valet_value_text`; for items of other programs also `valet_value_bytes` or `valet_value_number`. */
    valet_value_type key_type;
    /** For text, which is followed by a NUL, and for bytes; otherwise NULL. */
    const void *key;
    /** The length in bytes. */
    size_t key_length;
    /** For a number. */
    int64_t key_number;
    /** The value. NULL if it is empty. */
    const uint8_t *value;
    /** The length in bytes. */
    size_t value_length;
} valet_pair;

/** The output of a callback: the pair to store. It is valid until the callback returns. */
typedef struct valet_output valet_output;

/**
 * Sets the pair to store, in a callback of type `valet_compact_map`. Copies the key and the value. A second call replaces the first pair.
 *
 * An empty key or value is refused by the migration, not here.
 *
 * @param output The output that the callback received.
 * @param key The key.
 * @param value The value; any bytes.
 * @return `valet_success`, or an error of arguments (see the top of this header).
 */
valet_status valet_output_set(valet_output *output, const char *key, size_t key_length, const void *value, size_t value_length);

/**
 * A callback that transforms the pair of one item.
 *
 * @param context The context that the caller passed.
 * @param pair The stored pair.
 * @param output Receives the pair to store through `valet_output_set()`. Without that call, the item is skipped.
 * @return `valet_success` to continue. Any other status ends the migration, with nothing written, and is returned by the migration function. Use
 *     numbers from `valet_status_first_of_caller` up to distinguish them from the statuses of the library.
 */
typedef valet_status (*valet_compact_map)(void *context, const valet_pair *pair, valet_output *output);

/**
 * Transforms existing items with a callback and stores the results in a valet: all of them, or none. The originals are not changed.
 *
 * @param destination The valet that receives the pairs.
 * @param query,query_count The query, as for `valet_migrate_matching()`.
 * @param map The callback.
 * @param context The context that is passed to the callback.
 * @return The status that `map` returned, if it is not success; otherwise as `valet_migrate_matching()`.
 */
valet_status valet_migrate_matching_with_map(
    valet *destination, const valet_query_entry *query, size_t query_count, valet_compact_map map, void *context);

/**
 * Transforms the values of another valet with a callback and stores the results in this one: all of them, or none. The originals are not changed.
 *
 * Otherwise like `valet_migrate_matching_with_map()`.
 */
valet_status valet_migrate_from_with_map(valet *destination, valet *source, valet_compact_map map, void *context);

/**
 * Copies the values that an earlier version of this valet stored with the deprecated accessibility "always".
 *
 * @param remove_on_completion Whether the originals are removed.
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from_always_accessible(valet *handle, bool remove_on_completion);

/** Like `valet_migrate_from_always_accessible()`, for the deprecated accessibility "always, this device only". */
valet_status valet_migrate_from_always_accessible_this_device_only(valet *handle, bool remove_on_completion);

/**
 * Copies the values that this valet stored on macOS 10.14 or earlier. A no-op that succeeds on other platforms.
 *
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from_pre_catalina(valet *handle);

/* ---- Secure Enclave valets ---- */

/** The authentication before a value can be read. All kinds require a passcode. The numbers are the raw values of SecureEnclaveAccessControl. */
typedef int32_t valet_access_control;

enum {
    /** Any enrolled fingerprint or face, or the passcode. */
    valet_access_control_user_presence = 1,
    /** Any fingerprint or face that is enrolled when the value is read. */
    valet_access_control_biometric_any = 2,
    /** A fingerprint or face that was enrolled when the value was stored. */
    valet_access_control_biometric_current_set = 3,
    /** The passcode. */
    valet_access_control_device_passcode = 4
};

/**
 * A valet that requires authentication each time a value is read. Storing, checking and removing show no prompt.
 *
 * Each function behaves like the function of `valet` with the same name, except for the differences in its comment.
 * If no passcode is set, storing returns `valet_error_could_not_access_keychain`.
 */
typedef struct valet_enclave valet_enclave;

/**
 * Creates a valet for this program that requires authentication.
 *
 * @param identifier The name of the valet; not empty.
 * @param access_control The kind of authentication.
 * @param result Receives the handle, to be freed with `valet_enclave_free()`; NULL on failure.
 * @return As `valet_create()`.
 */
valet_status valet_enclave_create(
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_enclave **result);

/** Creates such a valet shared by all programs that have an access group. Otherwise like `valet_create_shared()`. */
valet_status valet_enclave_create_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_enclave **result);

/** As `valet_free()`. */
void valet_enclave_free(valet_enclave *handle);

/** As `valet_is_equal()`. */
bool valet_enclave_is_equal(valet_enclave *first, valet_enclave *second);

/** As `valet_hash()`. */
uint64_t valet_enclave_hash(valet_enclave *handle);

/** As `valet_describe()`. */
valet_status valet_enclave_describe(valet_enclave *handle, char **text, size_t *text_length);

/** As `valet_can_access()`, for the class that requires a passcode. Shows no prompt, and does not check whether the person can
 *  satisfy the access control. */
bool valet_enclave_can_access(valet_enclave *handle);

/** As `valet_set()`. Shows no prompt. */
valet_status valet_enclave_set(valet_enclave *handle, const char *key, size_t key_length, const void *value, size_t value_length);

/** As `valet_set_string()`. Shows no prompt. */
valet_status valet_enclave_set_string(
    valet_enclave *handle, const char *key, size_t key_length, const char *string, size_t string_length);

/**
 * Prompts with the default text, and reads the bytes stored under a key.
 *
 * @return As `valet_get()`. Also `valet_error_user_cancelled` if authentication failed or was canceled, and
 *     `valet_error_could_not_access_keychain` if no prompt can be shown.
 */
valet_status valet_enclave_get(valet_enclave *handle, const char *key, size_t key_length, uint8_t **value, size_t *value_length);

/**
 * Prompts, and reads the bytes stored under a key. Otherwise like `valet_enclave_get()`.
 *
 * @param prompt The reason shown in the prompt. If empty, the default text is shown.
 */
valet_status valet_enclave_get_with_prompt(
    valet_enclave *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, uint8_t **value,
    size_t *value_length);

/** Prompts with the default text, and reads text: see `valet_enclave_get()` and `valet_get_string()`. */
valet_status valet_enclave_get_string(
    valet_enclave *handle, const char *key, size_t key_length, char **string, size_t *string_length);

/** Prompts, and reads text: see `valet_enclave_get_with_prompt()` and `valet_get_string()`. */
valet_status valet_enclave_get_string_with_prompt(
    valet_enclave *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, char **string,
    size_t *string_length);

/** As `valet_contains()`. Shows no prompt, and finds a value also while the device is locked. */
valet_status valet_enclave_contains(valet_enclave *handle, const char *key, size_t key_length, bool *result);

/** As `valet_remove()`. Shows no prompt. */
valet_status valet_enclave_remove(valet_enclave *handle, const char *key, size_t key_length);

/** As `valet_remove_all()`. Shows no prompt. */
valet_status valet_enclave_remove_all(valet_enclave *handle);

/** As `valet_migrate_matching()`. Writing shows no prompt. */
valet_status valet_enclave_migrate_matching(
    valet_enclave *destination, const valet_query_entry *query, size_t query_count, bool remove_on_completion);

/** As `valet_migrate_from()`. The source is a valet without authentication. */
valet_status valet_enclave_migrate_from(valet_enclave *destination, valet *source, bool remove_on_completion);

/**
 * Copies the values of the single-prompt valet with the same identifier, group and access control. Prompts once.
 *
 * @param remove_on_completion Whether the originals are removed.
 * @return As `valet_migrate_matching()`, or `valet_error_user_cancelled`.
 */
valet_status valet_enclave_migrate_from_single_prompt(valet_enclave *destination, bool remove_on_completion);

/* ---- Single-prompt Secure Enclave valets ---- */

/**
 * A valet that requires authentication once: the first read prompts, and later reads with the same valet do not, until
 * `valet_single_prompt_require_prompt_on_next_access()` is called or the authentication expires.
 *
 * Handles for the same arguments share the authentication as long as one of them exists. Otherwise like `valet_enclave`.
 */
typedef struct valet_single_prompt valet_single_prompt;

/** As `valet_enclave_create()`. Free the handle with `valet_single_prompt_free()`. */
valet_status valet_single_prompt_create(
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_single_prompt **result);

/** As `valet_enclave_create_shared()`. Free the handle with `valet_single_prompt_free()`. */
valet_status valet_single_prompt_create_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_single_prompt **result);

/** As `valet_free()`. */
void valet_single_prompt_free(valet_single_prompt *handle);

/** As `valet_is_equal()`. */
bool valet_single_prompt_is_equal(valet_single_prompt *first, valet_single_prompt *second);

/** As `valet_hash()`. */
uint64_t valet_single_prompt_hash(valet_single_prompt *handle);

/** As `valet_describe()`. */
valet_status valet_single_prompt_describe(valet_single_prompt *handle, char **text, size_t *text_length);

/**
 * Makes the next read prompt again. A call that has already begun continues with its authentication.
 *
 * @return `valet_success`, or an error of the handle (see the top of this header).
 */
valet_status valet_single_prompt_require_prompt_on_next_access(valet_single_prompt *handle);

/** As `valet_enclave_can_access()`. */
bool valet_single_prompt_can_access(valet_single_prompt *handle);

/** As `valet_enclave_set()`. */
valet_status valet_single_prompt_set(
    valet_single_prompt *handle, const char *key, size_t key_length, const void *value, size_t value_length);

/** As `valet_enclave_set_string()`. */
valet_status valet_single_prompt_set_string(
    valet_single_prompt *handle, const char *key, size_t key_length, const char *string, size_t string_length);

/** As `valet_enclave_get_with_prompt()`, but prompts only without an earlier authentication. NULL with the length 0 is the empty prompt. */
valet_status valet_single_prompt_get_with_prompt(
    valet_single_prompt *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, uint8_t **value,
    size_t *value_length);

/** As `valet_enclave_get_string_with_prompt()`, but prompts only without an earlier authentication. */
valet_status valet_single_prompt_get_string_with_prompt(
    valet_single_prompt *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, char **string,
    size_t *string_length);

/** As `valet_enclave_contains()`. */
valet_status valet_single_prompt_contains(valet_single_prompt *handle, const char *key, size_t key_length, bool *result);

/**
 * As `valet_all_keys()`, but prompts without an earlier authentication, unless the valet has no values.
 *
 * @param prompt The reason shown in the prompt. If empty, the default text is shown.
 */
valet_status valet_single_prompt_all_keys(
    valet_single_prompt *handle, const char *prompt, size_t prompt_length, valet_key_callback callback, void *context);

/** As `valet_enclave_remove()`. */
valet_status valet_single_prompt_remove(valet_single_prompt *handle, const char *key, size_t key_length);

/** As `valet_enclave_remove_all()`. */
valet_status valet_single_prompt_remove_all(valet_single_prompt *handle);

/** As `valet_enclave_migrate_matching()`. */
valet_status valet_single_prompt_migrate_matching(
    valet_single_prompt *destination, const valet_query_entry *query, size_t query_count, bool remove_on_completion);

/** As `valet_enclave_migrate_from()`. */
valet_status valet_single_prompt_migrate_from(valet_single_prompt *destination, valet *source, bool remove_on_completion);

#ifdef __cplusplus
}
#endif

#endif
