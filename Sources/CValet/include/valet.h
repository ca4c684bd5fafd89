/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file valet.h
 * Valet for C and for whatever can call C: secrets stored in the keychain, values under keys.
 *
 *     valet *keeper = NULL;
 *     valet_create("Druidia", valet_nul_terminated, valet_accessibility_when_unlocked, &keeper);
 *     valet_set_string(keeper, "Skroob", valet_nul_terminated, "12345", valet_nul_terminated);
 *
 *     char *secret = NULL;
 *     if (valet_get_string(keeper, "Skroob", valet_nul_terminated, &secret, NULL) == valet_success) puts(secret);
 *     valet_buffer_free(secret);
 *     valet_free(keeper);
 *
 * What follows holds for every function; what a function adds to it stands at the function.
 *
 * **Status.** Whatever can fail answers a `valet_status`: 0 is success. What failed has changed nothing: the value that was stored before is
 * still stored, and a migration brings all or nothing. Every result a function gives through a pointer is set on failure too: to NULL, 0 or false.
 *
 * **Text and lengths.** Keys, identifiers, prompts and strings are UTF-8, given by pointer and length in bytes, without a terminating NUL.
 * The length `valet_nul_terminated` says that the text ends at its first NUL. With any other length, a NUL inside is part of the
 * text like any other character. Text that is not UTF-8 is refused with `valet_error_not_utf8`.
 * Two texts are the same only if their bytes are the same.
 *
 * **NULL.** A NULL pointer with the length 0 is an empty text or value. A NULL pointer with any other length, `valet_nul_terminated` too, is
 * `valet_error_null_argument`; so is a NULL handle, a NULL callback, and a NULL pointer for a result, unless the function says otherwise.
 * The context of a callback may be NULL. Every function that frees does nothing for NULL.
 *
 * **Wrong lengths.** A length of more than half the address space, or `valet_nul_terminated` for something that is not text, is
 * `valet_error_invalid_length`. A length that is merely greater than what the pointer points to cannot be noticed: behaviour is undefined.
 *
 * **Ownership.** What a function is given stays the caller's; it is copied where it has to outlive the call. Handles belong to the caller, who
 * frees each one once with the function of its type; a handle of one type is refused where another is wanted (`valet_error_wrong_handle`).
 * Buffers that a function gives belong to the caller, who passes each to `valet_buffer_free()`, which wipes it first. They are followed by a
 * NUL that is not part of the length. What a callback is given is the library's, and is gone when the callback returns.
 *
 * **Secrets in memory.** The buffers handed out are wiped when they are freed. Copies that reading or storing makes on the way are not
 * all wiped: a secret should be held no longer than it is needed, but a memory dump of the process may show it even so.
 *
 * **Whose values.** As everywhere in the keychain, values belong to the program: to its application identifier, which without entitlements is the
 * name of its executable file. In an interpreter that is the interpreter's name, for every script alike; KEYCHAIN_ENTITLEMENTS names a file that says better.
 *
 * **Threads.** Every function may be called from any thread at any time, with the same handle too. Only freeing must not happen while
 * another thread still uses what is freed. A call reads from or writes to disk; one that asks a person waits for them. After fork(), a
 * child that did not call exec() gets `valet_error_could_not_access_keychain` if the parent had used the keychain. The library is never
 * unloaded: dlclose() has no effect on it.
 *
 * **Log.** What a status cannot tell, such as the reason why the keychain cannot be used, is written to standard error, a line each: never a
 * secret, a key or a value, but paths of the keychain's files.
 *
 * **Callbacks.** They are called before the function returns, in the calling thread, with nothing locked: they may call any function of this
 * header, except that no handle may be freed that the outer call was given. They must return: no longjmp and no exception may leave them.
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

/** The version of the interface in this header. It grows when something is added; what was there before stays. */
enum { valet_interface_version = 1 };

/**
 * The version of the interface that the library has. A program needs one that is at least the `valet_interface_version` it was compiled with.
 *
 * @return The version, 1 or more.
 */
int32_t valet_library_interface_version(void);

/**
 * The version of the project that the library is part of, for people to read, such as "1.2.3".
 *
 * @return Static text, ended by NUL; never NULL, never to be freed.
 */
const char *valet_version(void);

/* ---- Status ---- */

/** How a call ended: one of the constants below, or what a callback of type `valet_compact_map` answered. */
typedef int32_t valet_status;

enum {
    /** It was done. */
    valet_success = 0,

    /* 1 to 99: the keychain. Each is the raw value of Swift's KeychainError, plus 1. */

    /** The keychain could not be used: it is locked, damaged, missing its key, or refused the call. It does not mean that there is no value. */
    valet_error_could_not_access_keychain = 1,
    /** The person cancelled, or could not show to be the person asked for. */
    valet_error_user_cancelled = 2,
    /** There is no value for the key, or its bytes are not UTF-8 and text was asked for. */
    valet_error_item_not_found = 3,
    /** The program's entitlements do not list the access group. */
    valet_error_missing_entitlement = 4,
    /** The key is empty. */
    valet_error_empty_key = 5,
    /** The value is empty. */
    valet_error_empty_value = 6,

    /* 101 to 199: migrations. Each is the raw value of Swift's MigrationError, plus 101. */

    /** The query is empty, is not about generic passwords, or asks for what a migration decides itself. */
    valet_error_invalid_query = 101,
    /** An item has no key that can be used, or the key is empty. */
    valet_error_key_to_migrate_invalid = 102,
    /** An item's value is empty. */
    valet_error_data_to_migrate_invalid = 103,
    /** Two items would get the same key. */
    valet_error_duplicate_key_to_migrate = 104,
    /** The valet migrated into already has a value for a key. */
    valet_error_key_to_migrate_already_exists = 105,
    /** A migrated item could not be removed from where it came from, or was changed there in the meantime. */
    valet_error_removal_failed = 106,

    /* 201 to 299: the caller. The keychain was not looked into, but for the two that are about what was read (208, 209). */

    /** A pointer is NULL that must not be. */
    valet_error_null_argument = 201,
    /** A length is more than half the address space, or says "ended by NUL" of something that is not text. */
    valet_error_invalid_length = 202,
    /** A text is not UTF-8. */
    valet_error_not_utf8 = 203,
    /** A number is none of the constants that are allowed there. */
    valet_error_unknown_constant = 204,
    /** The handle is of another type. */
    valet_error_wrong_handle = 205,
    /** The identifier, or the group, or an App ID prefix, is empty. */
    valet_error_empty_identifier = 206,
    /** The group prefix is not one that this platform has. */
    valet_error_invalid_group_prefix = 207,
    /** The text has a NUL inside, and the caller did not ask for its length. */
    valet_error_embedded_nul = 208,
    /** There is no memory for the result. */
    valet_error_no_memory = 209,

    /** From here on the library itself answers nothing: these are for the callbacks of a program. */
    valet_status_first_of_caller = 1000
};

/**
 * What a status means, in English, for a log or an error message. It holds no key and no value.
 *
 * @param status Any number.
 * @return Static text, ended by NUL; never NULL, never to be freed. A number that is no status gives "unknown status".
 */
const char *valet_status_text(valet_status status);

/* ---- Text ---- */

/** Given for the length of a text: it ends at its first NUL. */
#define valet_nul_terminated ((size_t)-1)

/* ---- Buffers ---- */

/**
 * Wipes and frees a buffer that a function of this header gave. How many bytes are wiped is what the library knows, not what the caller says.
 *
 * @param buffer The buffer, or NULL. Freeing one twice is undefined, as for free().
 */
void valet_buffer_free(void *buffer);

/* ---- Valets ---- */

/**
 * A valet: keeps the values of one sandbox. What it is created with decides who sees the values, and keeps them apart from those of every other.
 *
 * Two handles for the same arguments may be the same pointer; each is freed once all the same.
 */
typedef struct valet valet;

/** When values can be read and written. The numbers are those of Swift's Accessibility. */
typedef int32_t valet_accessibility;

enum {
    /** While the device is unlocked. */
    valet_accessibility_when_unlocked = 1,
    /** From the first unlock after a start until the device is switched off. */
    valet_accessibility_after_first_unlock = 2,
    /** While the device is unlocked and only while a passcode is set; never leaves the device. */
    valet_accessibility_when_passcode_set_this_device_only = 4,
    /** While the device is unlocked; never leaves the device. */
    valet_accessibility_when_unlocked_this_device_only = 5,
    /** From the first unlock after a start until the device is switched off; never leaves the device. */
    valet_accessibility_after_first_unlock_this_device_only = 6
};

/** When values that other devices also have can be read and written. The numbers are those of Swift's CloudAccessibility. */
typedef int32_t valet_cloud_accessibility;

enum {
    /** While the device is unlocked. */
    valet_cloud_accessibility_when_unlocked = 1,
    /** From the first unlock after a start until the device is switched off. */
    valet_cloud_accessibility_after_first_unlock = 2
};

/** What stands before the dot in the full name of an access group. */
typedef int32_t valet_group_prefix;

enum {
    /** The App ID prefix of the maker: the group is listed under `keychain-access-groups` in the program's entitlements. */
    valet_group_prefix_app_id = 1,
    /** "group" (on macOS: the App ID prefix): it is listed under `com.apple.security.application-groups`. */
    valet_group_prefix_application_group = 2
};

/**
 * Creates a valet for this program on this device.
 *
 * @param identifier Names the values; not empty.
 * @param accessibility When they can be read and written.
 * @param result Gets the handle: `valet_free()` it. On failure it gets NULL.
 * @return `valet_success`; `valet_error_empty_identifier`, `valet_error_unknown_constant`, or what the top of this header says of arguments. The
 *     keychain is not touched: whether it can be used, `valet_can_access()` tells.
 */
valet_status valet_create(const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/**
 * Creates a valet whose values the other devices of the same person also have; where nothing brings them there, this device alone.
 *
 * The rest is as for `valet_create()`.
 */
valet_status valet_create_icloud(
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a valet shared by all programs that have an access group, `prefix.group`.
 *
 * @param prefix_kind What the prefix is.
 * @param prefix The prefix without the dot; not empty.
 * @param group The group without its prefix; not empty. Unless the entitlements list the group, each use answers
 *     `valet_error_missing_entitlement`.
 * @param identifier Separates several valets of one group; NULL with the length 0, or empty, for none.
 * @param accessibility When the values can be read and written.
 * @param result Gets the handle: `valet_free()` it. On failure it gets NULL.
 * @return As `valet_create()`; also `valet_error_invalid_group_prefix`.
 */
valet_status valet_create_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/** Creates a valet that is both: `valet_create_shared()` and `valet_create_icloud()`. */
valet_status valet_create_icloud_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a valet whose identifier is the service of its items, word for word: for names that people are shown.
 *
 * Nothing else keeps it apart from valets and programs with the same identifier, so it must be unique. The rest is as for `valet_create()`.
 */
valet_status valet_create_explicit(
    const char *identifier, size_t identifier_length, valet_accessibility accessibility, valet **result);

/** Creates an iCloud valet whose identifier is the service of its items, word for word: `valet_create_explicit()` and `valet_create_icloud()`. */
valet_status valet_create_icloud_explicit(
    const char *identifier, size_t identifier_length, valet_cloud_accessibility accessibility, valet **result);

/**
 * Creates a shared valet whose group, without its prefix, is the service of its items, word for word.
 *
 * The rest is as for `valet_create_shared()`, without an identifier.
 */
valet_status valet_create_explicit_shared(
    valet_group_prefix prefix_kind, const char *prefix, size_t prefix_length, const char *group, size_t group_length,
    valet_accessibility accessibility, valet **result);

/** Creates a valet that is both: `valet_create_explicit_shared()` and `valet_create_icloud()`. */
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
 * Whether two valets see the same values.
 *
 * @param first,second Handles. NULL is equal to NULL alone, and what is not a handle of this type to nothing.
 * @return True if what one stores the other reads.
 */
bool valet_is_equal(valet *first, valet *second);

/**
 * A number that is equal for equal valets, and differs from one run of a program to the next.
 *
 * @param handle The handle; NULL gives 0, and so does a handle of another type.
 */
uint64_t valet_hash(valet *handle);

/**
 * The identifier, the accessibility and the sort of valet, for people to read. It holds no key and no value.
 *
 * @param text Gets the text: `valet_buffer_free()` it. On failure it gets NULL.
 * @param text_length Gets its length in bytes. It may be NULL; then text with a NUL inside is `valet_error_embedded_nul`.
 * @return `valet_success`, or what the top of this header says of arguments.
 */
valet_status valet_describe(valet *handle, char **text, size_t *text_length);

/**
 * Whether values can be stored and read now. An item of its own is written and read for this; nobody is asked.
 *
 * @param handle The handle; NULL gives false, and so does a handle of another type.
 * @return True if the keychain is accessible.
 */
bool valet_can_access(valet *handle);

/**
 * Stores bytes under a key. A value that was there is replaced at one stroke: at no moment is there none.
 *
 * @param key The key; empty: `valet_error_empty_key`.
 * @param value The value; any bytes. Empty: `valet_error_empty_value`.
 * @param value_length How many bytes; `valet_nul_terminated` is `valet_error_invalid_length`.
 * @return `valet_success`, an error of the keychain (1 to 99), or what the top of this header says of arguments.
 */
valet_status valet_set(valet *handle, const char *key, size_t key_length, const void *value, size_t value_length);

/**
 * Stores text under a key, as UTF-8. The rest is as for `valet_set()`.
 *
 * @param string The text; not UTF-8: `valet_error_not_utf8`, and nothing is stored.
 */
valet_status valet_set_string(valet *handle, const char *key, size_t key_length, const char *string, size_t string_length);

/**
 * Reads the bytes stored under a key.
 *
 * @param key The key; empty: `valet_error_empty_key`.
 * @param value Gets the value, a buffer of the caller's: `valet_buffer_free()` it. On failure it gets NULL.
 * @param value_length Gets how many bytes. It must not be NULL.
 * @return `valet_success`; `valet_error_item_not_found` if there is none; another error of the keychain (1 to 99), or what the top of this header
 *     says of arguments.
 */
valet_status valet_get(valet *handle, const char *key, size_t key_length, uint8_t **value, size_t *value_length);

/**
 * Reads the text stored under a key.
 *
 * @param string Gets the text, ended by NUL, a buffer of the caller's: `valet_buffer_free()` it. On failure it gets NULL.
 * @param string_length Gets its length in bytes. It may be NULL; then text with a NUL inside is `valet_error_embedded_nul`.
 * @return As `valet_get()`; bytes that are not UTF-8 are `valet_error_item_not_found`.
 */
valet_status valet_get_string(valet *handle, const char *key, size_t key_length, char **string, size_t *string_length);

/**
 * Whether there is a value under a key. It is not read.
 *
 * @param result Gets false only if the keychain could look and there is none, or if the call failed.
 * @return `valet_success` whether there is one or not; else as `valet_get()`.
 */
valet_status valet_contains(valet *handle, const char *key, size_t key_length, bool *result);

/**
 * Removes the value under a key. That there is none is success.
 *
 * @param key The key; empty: `valet_error_empty_key`.
 * @return As `valet_set()`.
 */
valet_status valet_remove(valet *handle, const char *key, size_t key_length);

/** Removes all values, or none if it fails. That there are none is success. */
valet_status valet_remove_all(valet *handle);

/**
 * Is called for a key.
 *
 * @param context What the caller gave.
 * @param key The key, followed by a NUL; gone when the callback returns.
 * @param key_length Its length in bytes.
 * @return True to go on, false to be given no more.
 */
typedef bool (*valet_key_callback)(void *context, const char *key, size_t key_length);

/**
 * Calls back for the key of each value, in the order of their bytes. All keys are read before the first call, so a callback may store and remove.
 *
 * @param callback Is called for each key.
 * @param context Is passed to it.
 * @return `valet_success`, also if there are none or the callback did not want more; an error of the keychain (1 to 99), before any call.
 */
valet_status valet_all_keys(valet *handle, valet_key_callback callback, void *context);

/* ---- Migration ---- */

/** What sort of value something is. */
typedef int32_t valet_value_type;

enum {
    /** UTF-8: `bytes` and `length`, which may be `valet_nul_terminated` in what a caller gives. */
    valet_value_text = 1,
    /** Any bytes: `bytes` and `length`. */
    valet_value_bytes = 2,
    /** A whole number: `number`. */
    valet_value_number = 3,
    /** `number`: 0 is false, anything else true. */
    valet_value_boolean = 4,
    /** A moment: `seconds` since 1970-01-01T00:00:00Z. */
    valet_value_date = 5
};

/** An attribute with the value that items must have for it, or an option of the search: an entry of the dictionary that SecItemCopyMatching takes. */
typedef struct {
    /** The attribute's name, ended by NUL: one of those below, or the value of any other `kSec…` constant of Apple's. */
    const char *name;
    /** Which of the following counts. The others are not looked at. */
    valet_value_type type;
    /** Of text and bytes. */
    const void *bytes;
    /** Of text and bytes. */
    size_t length;
    /** Of a number, and of a boolean. */
    int64_t number;
    /** Of a date. */
    double seconds;
} valet_query_entry;

/* Names. What an item can be found by; a query that is no use to a migration is answered valet_error_invalid_query, one that the keychain
   does not understand valet_error_could_not_access_keychain. An LAContext or an access control cannot be given. */

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
 * Brings existing items of the keychain into a valet: all that match, or none.
 *
 * Everything is checked before anything is written; if writing or removing fails, what was done is undone.
 *
 * @param destination Where they go.
 * @param query Which items. A name that comes twice is `valet_error_invalid_query`, and so is a query without entries.
 * @param query_count How many entries; the pointer may be NULL if there are none.
 * @param remove_on_completion Whether the items are removed from where they were.
 * @return `valet_success`; `valet_error_item_not_found` if nothing matches; an error of migrations (101 to 199) or of the keychain (1 to 99), or what
 *     the top of this header says of arguments.
 */
valet_status valet_migrate_matching(
    valet *destination, const valet_query_entry *query, size_t query_count, bool remove_on_completion);

/**
 * Brings the values of another valet into this one: all of them, or none.
 *
 * @param destination Where they go.
 * @param source Where they are.
 * @param remove_on_completion Whether they are removed from there.
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from(valet *destination, valet *source, bool remove_on_completion);

/** A key and a value on the way from one place to another. What it points to is gone when the callback returns. */
typedef struct {
    /** What the key is: `valet_value_text`; of items that other programs stored, also `valet_value_bytes` or `valet_value_number`. */
    valet_value_type key_type;
    /** Of text, which is followed by a NUL, and of bytes; else NULL. */
    const void *key;
    /** In bytes. */
    size_t key_length;
    /** Of a number. */
    int64_t key_number;
    /** The value. It may be empty, and is then NULL. */
    const uint8_t *value;
    /** In bytes. */
    size_t value_length;
} valet_pair;

/** What a callback puts the pair to store into. It is gone when the callback returns. */
typedef struct valet_output valet_output;

/**
 * Says what is to be stored, from inside a callback of type `valet_compact_map`. Key and value are copied. Said twice, the later one counts.
 *
 * That the key or the value is empty is refused by the migration, not here.
 *
 * @param output What the callback was given.
 * @param key The key.
 * @param value The value; any bytes.
 * @return `valet_success`, or what the top of this header says of arguments.
 */
valet_status valet_output_set(valet_output *output, const char *key, size_t key_length, const void *value, size_t value_length);

/**
 * Makes the pair to store from the pair of one item.
 *
 * @param context What the caller gave.
 * @param pair What is stored now.
 * @param output Where `valet_output_set()` puts what is to be stored; without that call the item is left out.
 * @return `valet_success` to go on. Anything else ends the migration, with nothing written, and is what the migrating function answers: use
 *     numbers from `valet_status_first_of_caller` on to tell them from the library's.
 */
typedef valet_status (*valet_compact_map)(void *context, const valet_pair *pair, valet_output *output);

/**
 * Brings what a callback makes of existing items into a valet: all or nothing. The items stay where they are.
 *
 * @param destination Where the pairs go.
 * @param query,query_count Which items, as for `valet_migrate_matching()`.
 * @param map Makes the pair to store from each.
 * @param context Is passed to it.
 * @return What `map` answered, if that was not success; else as `valet_migrate_matching()`.
 */
valet_status valet_migrate_matching_with_map(
    valet *destination, const valet_query_entry *query, size_t query_count, valet_compact_map map, void *context);

/**
 * Brings what a callback makes of the values of another valet into this one: all or nothing. The values stay where they are.
 *
 * The rest is as for `valet_migrate_matching_with_map()`.
 */
valet_status valet_migrate_from_with_map(valet *destination, valet *source, valet_compact_map map, void *context);

/**
 * Brings the values that an earlier version of this valet kept with the withdrawn accessibility "always".
 *
 * @param remove_on_completion Whether they are removed from there.
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from_always_accessible(valet *handle, bool remove_on_completion);

/** The same for the withdrawn accessibility "always, this device only". */
valet_status valet_migrate_from_always_accessible_this_device_only(valet *handle, bool remove_on_completion);

/**
 * Brings the values that this valet kept on macOS 10.14 or earlier. On other platforms there is nothing to do: success.
 *
 * @return As `valet_migrate_matching()`.
 */
valet_status valet_migrate_from_pre_catalina(valet *handle);

/* ---- Secure Enclave valets ---- */

/** What a person must do before a value can be read; all need a passcode to be set. The numbers are those of Swift's SecureEnclaveAccessControl. */
typedef int32_t valet_access_control;

enum {
    /** Show that they are there: by any enrolled finger or face, or by the passcode. */
    valet_access_control_user_presence = 1,
    /** Show any finger or face that is enrolled when the value is read. */
    valet_access_control_biometric_any = 2,
    /** Show a finger or face that was enrolled when the value was stored. */
    valet_access_control_biometric_current_set = 3,
    /** Type the passcode. */
    valet_access_control_device_passcode = 4
};

/**
 * A valet whose values a person has to release each time one is read. Storing, looking and removing ask nobody.
 *
 * Each function is as the one of `valet` with the same name, and has the same rules; only what differs is said.
 * Where no passcode is set, storing answers `valet_error_could_not_access_keychain`.
 */
typedef struct valet_enclave valet_enclave;

/**
 * Creates a valet for this program whose values a person has to release.
 *
 * @param identifier Names the values; not empty.
 * @param access_control What the person must do.
 * @param result Gets the handle: `valet_enclave_free()` it. On failure it gets NULL.
 * @return As `valet_create()`.
 */
valet_status valet_enclave_create(
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_enclave **result);

/** Creates such a valet shared by all programs that have an access group; the rest is as for `valet_create_shared()`. */
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

/** As `valet_can_access()`: whether values can be stored now, and read if the person agrees. Nobody is asked. */
bool valet_enclave_can_access(valet_enclave *handle);

/** As `valet_set()`. Nobody is asked. */
valet_status valet_enclave_set(valet_enclave *handle, const char *key, size_t key_length, const void *value, size_t value_length);

/** As `valet_set_string()`. Nobody is asked. */
valet_status valet_enclave_set_string(
    valet_enclave *handle, const char *key, size_t key_length, const char *string, size_t string_length);

/**
 * Asks the person in the keychain's own words, and reads the bytes stored under a key.
 *
 * @return As `valet_get()`; also `valet_error_user_cancelled` if the person does not want to, or could not show to be the right one, and
 *     `valet_error_could_not_access_keychain` if there is nobody to ask.
 */
valet_status valet_enclave_get(valet_enclave *handle, const char *key, size_t key_length, uint8_t **value, size_t *value_length);

/**
 * Asks the person, and reads the bytes stored under a key. The rest is as for `valet_enclave_get()`.
 *
 * @param prompt What the person is told the value is for; empty leaves the words to the keychain.
 */
valet_status valet_enclave_get_with_prompt(
    valet_enclave *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, uint8_t **value,
    size_t *value_length);

/** Asks the person in the keychain's own words, and reads text: as `valet_enclave_get()` and `valet_get_string()`. */
valet_status valet_enclave_get_string(
    valet_enclave *handle, const char *key, size_t key_length, char **string, size_t *string_length);

/** Asks the person, and reads text: as `valet_enclave_get_with_prompt()` and `valet_get_string()`. */
valet_status valet_enclave_get_string_with_prompt(
    valet_enclave *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, char **string,
    size_t *string_length);

/** As `valet_contains()`. Nobody is asked; a value is seen while the device is locked, too. */
valet_status valet_enclave_contains(valet_enclave *handle, const char *key, size_t key_length, bool *result);

/** As `valet_remove()`. Nobody is asked. */
valet_status valet_enclave_remove(valet_enclave *handle, const char *key, size_t key_length);

/** As `valet_remove_all()`. Nobody is asked. */
valet_status valet_enclave_remove_all(valet_enclave *handle);

/** As `valet_migrate_matching()`. Writing asks nobody; should copies have to go again, the person is asked once. */
valet_status valet_enclave_migrate_matching(
    valet_enclave *destination, const valet_query_entry *query, size_t query_count, bool remove_on_completion);

/** As `valet_migrate_from()`: brings the values of a valet that asks nobody. */
valet_status valet_enclave_migrate_from(valet_enclave *destination, valet *source, bool remove_on_completion);

/**
 * Brings the values of the single prompt valet with the same identifier, group and access control. The person is asked once.
 *
 * @param remove_on_completion Whether they are removed from there.
 * @return As `valet_migrate_matching()`; also `valet_error_user_cancelled`.
 */
valet_status valet_enclave_migrate_from_single_prompt(valet_enclave *destination, bool remove_on_completion);

/* ---- Single prompt Secure Enclave valets ---- */

/**
 * A valet whose values a person has to release once: the first read asks, later ones with the same valet do not, until
 * `valet_single_prompt_require_prompt_on_next_access()` or until the answer has run out.
 *
 * Handles for the same arguments share the answer as long as one of them lives. The rest is as for `valet_enclave`.
 */
typedef struct valet_single_prompt valet_single_prompt;

/** As `valet_enclave_create()`; `valet_single_prompt_free()` the handle. */
valet_status valet_single_prompt_create(
    const char *identifier, size_t identifier_length, valet_access_control access_control, valet_single_prompt **result);

/** As `valet_enclave_create_shared()`; `valet_single_prompt_free()` the handle. */
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
 * Makes the next call that reads ask the person again. A call that has begun goes on with the answer it has, or waits for.
 *
 * @return `valet_success`, or what the top of this header says of handles.
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

/** As `valet_enclave_get_with_prompt()`, and asks only if that was not done before. NULL with the length 0 is the empty prompt. */
valet_status valet_single_prompt_get_with_prompt(
    valet_single_prompt *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, uint8_t **value,
    size_t *value_length);

/** As `valet_enclave_get_string_with_prompt()`, and asks only if that was not done before. */
valet_status valet_single_prompt_get_string_with_prompt(
    valet_single_prompt *handle, const char *key, size_t key_length, const char *prompt, size_t prompt_length, char **string,
    size_t *string_length);

/** As `valet_enclave_contains()`. */
valet_status valet_single_prompt_contains(valet_single_prompt *handle, const char *key, size_t key_length, bool *result);

/**
 * As `valet_all_keys()`, and asks the person unless that was done before.
 *
 * @param prompt What the person is told it is for; empty leaves the words to the keychain. Where there are no values, nobody is asked.
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
