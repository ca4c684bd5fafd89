// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// valet.h declares each function and the requirements for its pointers; the compiler checks the signatures against it.

@c @implementation
package func valet_enclave_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe SecureEnclaveValet.valet(
            with: CArguments.identifier(identifier, identifierLength), accessControl: CArguments.accessControl(accessControl))
    }
}

@c @implementation
package func valet_enclave_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe SecureEnclaveValet.sharedGroupValet(
            with: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: CArguments.optionalIdentifier(identifier, identifierLength), accessControl: CArguments.accessControl(accessControl))
    }
}

@c @implementation
package func valet_enclave_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: SecureEnclaveValet.self)
}

@c @implementation
package func valet_enclave_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe ValetCall<SecureEnclaveValet>.isEqual(first, second)
}

@c @implementation
package func valet_enclave_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe ValetCall<SecureEnclaveValet>.hash(handle)
}

@c @implementation
package func valet_enclave_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.describe(handle, text, textLength)
}

@c @implementation
package func valet_enclave_can_access(_ handle: OpaquePointer?) -> Bool {
    unsafe ValetCall<SecureEnclaveValet>.canAccess(handle)
}

@c @implementation
package func valet_enclave_set(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.set(handle, key, keyLength, value, valueLength)
}

@c @implementation
package func valet_enclave_set_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.setString(handle, key, keyLength, string, stringLength)
}

@c @implementation
package func valet_enclave_contains(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.contains(handle, key, keyLength, result)
}

@c @implementation
package func valet_enclave_remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.remove(handle, key, keyLength)
}

@c @implementation
package func valet_enclave_remove_all(_ handle: OpaquePointer?) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.removeAll(handle)
}

@c @implementation
package func valet_enclave_get(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?,
    _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnBytes(value, valueLength) {
        try unsafe Handle.object(handle, as: SecureEnclaveValet.self).object(forKey: CInput.text(key, keyLength))
    }
}

@c @implementation
package func valet_enclave_get_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnText(string, stringLength) {
        try unsafe Handle.object(handle, as: SecureEnclaveValet.self).object(forKey: CInput.text(key, keyLength))
    }
}

@c @implementation
package func valet_enclave_get_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnBytes(value, valueLength) {
        try unsafe Handle.object(handle, as: SecureEnclaveValet.self).object(
            forKey: CInput.text(key, keyLength), withPrompt: CInput.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_enclave_get_string_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnText(string, stringLength) {
        try unsafe Handle.object(handle, as: SecureEnclaveValet.self).object(
            forKey: CInput.text(key, keyLength), withPrompt: CInput.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_enclave_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe ValetCall<SecureEnclaveValet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_enclave_migrate_from(_ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status
{
    unsafe ValetCall<SecureEnclaveValet>.migrate(destination, from: source, removeOnCompletion)
}

@c @implementation
package func valet_enclave_migrate_from_single_prompt(_ destination: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    status {
        try unsafe Handle.object(destination, as: SecureEnclaveValet.self).migrateObjectsFromSinglePromptSecureEnclaveValet(
            removeOnCompletion: removeOnCompletion)
    }
}
