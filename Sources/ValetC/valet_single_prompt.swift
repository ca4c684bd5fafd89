// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// valet.h declares each function and the requirements for its pointers; the compiler checks the signatures against it.

#if !os(tvOS) && !os(watchOS)

@c @implementation
package func valet_single_prompt_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe SinglePromptSecureEnclaveValet.valet(
            with: CArguments.identifier(identifier, identifierLength), accessControl: CArguments.accessControl(accessControl))
    }
}

@c @implementation
package func valet_single_prompt_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe SinglePromptSecureEnclaveValet.sharedGroupValet(
            with: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: CArguments.optionalIdentifier(identifier, identifierLength), accessControl: CArguments.accessControl(accessControl))
    }
}

@c @implementation
package func valet_single_prompt_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: SinglePromptSecureEnclaveValet.self)
}

@c @implementation
package func valet_single_prompt_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.isEqual(first, second)
}

@c @implementation
package func valet_single_prompt_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.hash(handle)
}

@c @implementation
package func valet_single_prompt_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.describe(handle, text, textLength)
}

@c @implementation
package func valet_single_prompt_can_access(_ handle: OpaquePointer?) -> Bool {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.canAccess(handle)
}

@c @implementation
package func valet_single_prompt_set(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.set(handle, key, keyLength, value, valueLength)
}

@c @implementation
package func valet_single_prompt_set_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.setString(handle, key, keyLength, string, stringLength)
}

@c @implementation
package func valet_single_prompt_contains(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.contains(handle, key, keyLength, result)
}

@c @implementation
package func valet_single_prompt_remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.remove(handle, key, keyLength)
}

@c @implementation
package func valet_single_prompt_remove_all(_ handle: OpaquePointer?) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.removeAll(handle)
}

@c @implementation
package func valet_single_prompt_get_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnBytes(value, valueLength) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).object(
            forKey: CInput.text(key, keyLength), withPrompt: CInput.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_single_prompt_get_string_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnText(string, stringLength) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).object(
            forKey: CInput.text(key, keyLength), withPrompt: CInput.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_single_prompt_all_keys(
    _ handle: OpaquePointer?, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int, _ callback: valet_key_callback?,
    _ context: UnsafeMutableRawPointer?
) -> valet_status {
    unsafe CResult.enumerateKeys(callback, context) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self)
            .keyList(userPrompt: CInput.text(prompt, promptLength)).keys
    }
}

@c @implementation
package func valet_single_prompt_require_prompt_on_next_access(_ handle: OpaquePointer?) -> valet_status {
    status { try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).requirePromptOnNextAccess() }
}

@c @implementation
package func valet_single_prompt_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_single_prompt_migrate_from(
    _ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe ValetCall<SinglePromptSecureEnclaveValet>.migrate(destination, from: source, removeOnCompletion)
}

#endif
