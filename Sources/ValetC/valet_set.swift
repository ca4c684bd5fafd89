// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_can_access(_ handle: OpaquePointer?) -> Bool {
    unsafe Call<Valet>.canAccess(handle)
}

@c @implementation
package func valet_set(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    unsafe Call<Valet>.set(handle, key, keyLength, value, valueLength)
}

@c @implementation
package func valet_set_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
) -> valet_status {
    unsafe Call<Valet>.setString(handle, key, keyLength, string, stringLength)
}

@c @implementation
package func valet_contains(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
) -> valet_status {
    unsafe Call<Valet>.contains(handle, key, keyLength, result)
}

@c @implementation
package func valet_remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
    unsafe Call<Valet>.remove(handle, key, keyLength)
}

@c @implementation
package func valet_remove_all(_ handle: OpaquePointer?) -> valet_status {
    unsafe Call<Valet>.removeAll(handle)
}
