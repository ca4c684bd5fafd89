// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import CValet

@c @implementation
package func valet_buffer_free(_ buffer: UnsafeMutableRawPointer?) {
    guard let buffer = unsafe buffer else { return }
    unsafe OutputBuffer.wipeAndFree(buffer)
}
