// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_enclave_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe SecureEnclaveValet.valet(
            with: Argument.identifier(identifier, identifierLength), accessControl: Argument.accessControl(accessControl))
    }
}

@c @implementation
package func valet_enclave_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessControl: valet_access_control,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe SecureEnclaveValet.sharedGroupValet(
            with: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: Argument.optionalIdentifier(identifier, identifierLength), accessControl: Argument.accessControl(accessControl))
    }
}

@c @implementation
package func valet_enclave_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: SecureEnclaveValet.self)
}

@c @implementation
package func valet_enclave_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe Call<SecureEnclaveValet>.isEqual(first, second)
}

@c @implementation
package func valet_enclave_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe Call<SecureEnclaveValet>.hash(handle)
}

@c @implementation
package func valet_enclave_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Call<SecureEnclaveValet>.describe(handle, text, textLength)
}
