// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_get(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?,
    _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Output.give(value, valueLength) {
        try unsafe Handle.object(handle, as: Valet.self).object(forKey: Input.text(key, keyLength))
    }
}

@c @implementation
package func valet_get_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe Output.giveText(string, stringLength) {
        try unsafe Handle.object(handle, as: Valet.self).object(forKey: Input.text(key, keyLength))
    }
}

@c @implementation
package func valet_all_keys(_ handle: OpaquePointer?, _ callback: valet_key_callback?, _ context: UnsafeMutableRawPointer?) -> valet_status
{
    unsafe Output.giveKeys(callback, context) {
        try unsafe Handle.object(handle, as: Valet.self).keyList()
    }
}
