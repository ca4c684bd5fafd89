// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: Valet.self)
}

@c @implementation
package func valet_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe Call<Valet>.isEqual(first, second)
}

@c @implementation
package func valet_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe Call<Valet>.hash(handle)
}

@c @implementation
package func valet_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Call<Valet>.describe(handle, text, textLength)
}
