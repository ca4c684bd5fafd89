// SPDX-License-Identifier: Apache-2.0
import CValet
import Foundation
import Testing

/// The functions of the header, called as C calls them, with results that tests can compare.
enum CallsFromSwift {
    static let nulTerminated = -1

    @safe static func text(
        _ read: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, UnsafeMutablePointer<Int>) -> valet_status
    ) -> (status: Int, text: String?) {
        var buffer: UnsafeMutablePointer<CChar>?
        var length = 0
        // Both live until the call returns; the buffer until it is freed here.
        let status = unsafe read(&buffer, &length)
        defer { unsafe valet_buffer_free(buffer) }
        guard let start = unsafe buffer else { return (Int(status), nil) }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: length)
        return unsafe (Int(status), String(decoding: bytes, as: UTF8.self))
    }

    @safe static func bytes(
        _ read: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>) -> valet_status
    ) -> (status: Int, bytes: Data?) {
        var buffer: UnsafeMutablePointer<UInt8>?
        var length = 0
        // As above.
        let status = unsafe read(&buffer, &length)
        defer { unsafe valet_buffer_free(buffer) }
        guard let start = unsafe buffer else { return (Int(status), nil) }
        return unsafe (Int(status), Data(bytes: start, count: length))
    }

    static func status(_ call: () -> valet_status) -> Int { Int(call()) }

    static func handle(_ make: (UnsafeMutablePointer<OpaquePointer?>) -> valet_status) throws -> OpaquePointer {
        var handle: OpaquePointer?
        // It lives until the call returns.
        let status = unsafe make(&handle)
        try #require(Int(status) == valet_success)
        return unsafe try #require(handle)
    }

    /// The keys that a call gives one by one.
    @safe static func keys(_ list: (valet_key_callback, UnsafeMutableRawPointer) -> valet_status) -> (status: Int, keys: [String]) {
        let collected = Collected()
        // It lives until the call that calls back returns.
        let status = withExtendedLifetime(collected) {
            unsafe list(
                { context, key, length in
                    guard let context = unsafe context, let key = unsafe key else { return false }
                    let text = unsafe String(decoding: UnsafeRawBufferPointer(start: key, count: length), as: UTF8.self)
                    unsafe Unmanaged<Collected>.fromOpaque(context).takeUnretainedValue().keys.append(text)
                    return true
                }, Unmanaged.passUnretained(collected).toOpaque())
        }
        return (Int(status), collected.keys)
    }

    private final class Collected {
        var keys: [String] = []
    }
}
