// SPDX-License-Identifier: Apache-2.0
package import CValet
internal import Foundation
internal import Valet

// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

#if !os(tvOS) && !os(watchOS)

@c @implementation
package func valet_single_prompt_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe SinglePromptSecureEnclaveValet.valet(
            with: Argument.identifier(identifier, identifierLength), accessControl: Argument.accessControl(accessControl))
    }
}

@c @implementation
package func valet_single_prompt_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe SinglePromptSecureEnclaveValet.sharedGroupValet(
            with: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: Argument.optionalIdentifier(identifier, identifierLength), accessControl: Argument.accessControl(accessControl))
    }
}

@c @implementation
package func valet_single_prompt_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: SinglePromptSecureEnclaveValet.self)
}

@c @implementation
package func valet_single_prompt_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe Call<SinglePromptSecureEnclaveValet>.isEqual(first, second)
}

@c @implementation
package func valet_single_prompt_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe Call<SinglePromptSecureEnclaveValet>.hash(handle)
}

@c @implementation
package func valet_single_prompt_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.describe(handle, text, textLength)
}

#endif

// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

#if !os(tvOS) && !os(watchOS)

@c @implementation
package func valet_single_prompt_can_access(_ handle: OpaquePointer?) -> Bool {
    unsafe Call<SinglePromptSecureEnclaveValet>.canAccess(handle)
}

@c @implementation
package func valet_single_prompt_set(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.set(handle, key, keyLength, value, valueLength)
}

@c @implementation
package func valet_single_prompt_set_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.setString(handle, key, keyLength, string, stringLength)
}

@c @implementation
package func valet_single_prompt_contains(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.contains(handle, key, keyLength, result)
}

@c @implementation
package func valet_single_prompt_remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.remove(handle, key, keyLength)
}

@c @implementation
package func valet_single_prompt_remove_all(_ handle: OpaquePointer?) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.removeAll(handle)
}

@c @implementation
package func valet_single_prompt_get_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Output.give(value, valueLength) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).object(
            forKey: Input.text(key, keyLength), withPrompt: Input.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_single_prompt_get_string_with_prompt(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int,
    _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Output.returnText(string, stringLength) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).object(
            forKey: Input.text(key, keyLength), withPrompt: Input.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_single_prompt_all_keys(
    _ handle: OpaquePointer?, _ prompt: UnsafePointer<CChar>?, _ promptLength: Int, _ callback: valet_key_callback?,
    _ context: UnsafeMutableRawPointer?
) -> valet_status {
    unsafe Output.enumerateKeys(callback, context) {
        try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).keyList(userPrompt: Input.text(prompt, promptLength))
    }
}

@c @implementation
package func valet_single_prompt_require_prompt_on_next_access(_ handle: OpaquePointer?) -> valet_status {
    statusAnswer { try unsafe Handle.object(handle, as: SinglePromptSecureEnclaveValet.self).requirePromptOnNextAccess() }
}

#endif

// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

#if !os(tvOS) && !os(watchOS)

@c @implementation
package func valet_single_prompt_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_single_prompt_migrate_from(
    _ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.migrate(destination, from: source, removeOnCompletion)
}

#endif
