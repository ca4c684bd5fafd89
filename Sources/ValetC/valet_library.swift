// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// valet.h declares each function and the requirements for its pointers; the compiler checks the signatures against it.

@c @implementation
package func valet_version() -> UnsafePointer<CChar>? {
    unsafe staticCString(projectVersion)
}

@c @implementation
package func valet_library_interface_version() -> Int32 {
    Int32(valet_interface_version)
}

/// A string literal as a NUL-terminated C string.
func staticCString(_ text: StaticString) -> UnsafePointer<CChar> {
    // A literal of more than one character is stored as UTF-8 with a trailing NUL, for the lifetime of the process.
    unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

@c @implementation
package func valet_status_text(_ status: valet_status) -> UnsafePointer<CChar>? {
    unsafe staticCString(statusText(Int(status)))
}

private func statusText(_ status: Int) -> StaticString {
    switch status {
    case valet_success: "success"
    case valet_error_could_not_access_keychain: "the keychain could not be accessed"
    case valet_error_user_cancelled: "authentication failed or was canceled"
    case valet_error_item_not_found: "no value exists for the key"
    case valet_error_missing_entitlement: "the program's entitlements do not list the access group"
    case valet_error_empty_key: "the key is empty"
    case valet_error_empty_value: "the value is empty"
    case valet_error_invalid_query: "the query is not valid for a migration"
    case valet_error_key_to_migrate_invalid: "the account of an item to migrate is not a usable key"
    case valet_error_data_to_migrate_invalid: "an item to migrate has an empty value"
    case valet_error_duplicate_key_to_migrate: "two items to migrate would get the same key"
    case valet_error_key_to_migrate_already_exists: "a key already exists in the destination valet"
    case valet_error_removal_failed: "an original could not be removed; the migration was undone"
    case valet_error_null_argument: "a required pointer is NULL"
    case valet_error_invalid_length: "a length is invalid"
    case valet_error_not_utf8: "a text is not valid UTF-8"
    case valet_error_unknown_constant: "a constant is unknown"
    case valet_error_wrong_handle: "the handle is of another type"
    case valet_error_empty_identifier: "the identifier, the group, or its prefix is empty"
    case valet_error_invalid_group_prefix: "the group prefix is not supported on this platform"
    case valet_error_embedded_nul: "the text contains a NUL, and no length pointer was given"
    case valet_error_no_memory: "out of memory"
    case valet_status_first_of_caller...: "a status defined by the caller"
    default: "unknown status"
    }
}

@c @implementation
package func valet_buffer_free(_ buffer: UnsafeMutableRawPointer?) {
    guard let buffer = unsafe buffer else { return }
    unsafe ResultBuffer.wipeAndFree(buffer)
}
