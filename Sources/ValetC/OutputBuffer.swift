// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation

/// Memory that is handed to C, and wiped when it comes back.
///
/// In front of it stands how much it is, since a caller may have forgotten or changed what it was told. Behind it stands a NUL.
enum OutputBuffer {
    /// As `malloc` aligns, so that what follows is aligned too.
    private static let headerByteCount = 16

    static func make(copying data: Data) throws(CallFailure) -> UnsafeMutableRawPointer {
        let byteCount = headerByteCount + data.count + 1
        guard let start = unsafe malloc(byteCount) else { throw CallFailure(valet_error_no_memory) }
        // All three parts lie in what was just allocated.
        unsafe start.storeBytes(of: byteCount, as: Int.self)
        let content = unsafe start + headerByteCount
        unsafe data.copyBytes(to: UnsafeMutableRawBufferPointer(start: content, count: data.count))
        unsafe content.storeBytes(of: 0, toByteOffset: data.count, as: UInt8.self)
        return unsafe content
    }

    static func wipeAndFree(_ content: UnsafeMutableRawPointer) {
        // A pointer that `make` returned: the header asks for no less.
        let start = unsafe content - headerByteCount
        let byteCount = unsafe start.load(as: Int.self)
        unsafe wipeMemory(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
        unsafe free(start)
    }
}
