// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

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
