// SPDX-License-Identifier: Apache-2.0
package import CValet

// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Each function is declared in valet.h; the compiler holds the signatures against it.

@c @implementation
package func valet_version() -> UnsafePointer<CChar>? {
    unsafe staticCString("0.1.0")
}

@c @implementation
package func valet_library_interface_version() -> Int32 {
    Int32(valet_interface_version)
}

/// Text that is part of the program, ended by NUL.
func staticCString(_ text: StaticString) -> UnsafePointer<CChar> {
    // A literal of more than one character is stored as UTF-8 with a NUL behind it, and is there for ever.
    unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase

@c @implementation
package func valet_status_text(_ status: valet_status) -> UnsafePointer<CChar>? {
    unsafe staticCString(statusText(Int(status)))
}

private func statusText(_ status: Int) -> StaticString {
    switch status {
    case valet_success: "success"
    case valet_error_could_not_access_keychain: "the keychain could not be accessed"
    case valet_error_user_cancelled: "the person cancelled, or could not show to be the right one"
    case valet_error_item_not_found: "there is no value for the key"
    case valet_error_missing_entitlement: "the program's entitlements do not list the access group"
    case valet_error_empty_key: "the key is empty"
    case valet_error_empty_value: "the value is empty"
    case valet_error_invalid_query: "the query cannot be used for a migration"
    case valet_error_key_to_migrate_invalid: "an item to migrate has no key that can be used"
    case valet_error_data_to_migrate_invalid: "an item to migrate has an empty value"
    case valet_error_duplicate_key_to_migrate: "two items to migrate would get the same key"
    case valet_error_key_to_migrate_already_exists: "the valet to migrate into already has a value for a key"
    case valet_error_removal_failed: "a migrated item could not be removed from where it was"
    case valet_error_null_argument: "a pointer is NULL that must not be"
    case valet_error_invalid_length: "a length cannot be right"
    case valet_error_not_utf8: "a text is not UTF-8"
    case valet_error_unknown_constant: "a number is none of the constants allowed there"
    case valet_error_wrong_handle: "the handle is of another type"
    case valet_error_empty_identifier: "the identifier, the group or its prefix is empty"
    case valet_error_invalid_group_prefix: "the group prefix is not one that this platform has"
    case valet_error_embedded_nul: "the text has a NUL inside, and its length was not asked for"
    case valet_error_no_memory: "there is no memory for the result"
    case valet_status_first_of_caller...: "a status of the program's own"
    default: "unknown status"
    }
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase

@c @implementation
package func valet_buffer_free(_ buffer: UnsafeMutableRawPointer?) {
    guard let buffer = unsafe buffer else { return }
    unsafe ResultBuffer.wipeAndFree(buffer)
}
