// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation

#if canImport(Darwin)
internal import Darwin
#else
// Not KeychainCore: this module is also built for Apple platforms, where there is no engine.
internal import CKeychainShims
#endif

/// Results that C receives through pointers.
///
/// A result pointer is NULL or points to a variable of the caller.
enum CResult {
    /// Returns bytes in a buffer that the caller frees.
    static func returnBytes(
        _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ length: UnsafeMutablePointer<Int>?,
        _ read: () throws -> Data
    ) -> valet_status {
        unsafe value?.pointee = nil
        unsafe length?.pointee = 0
        return status {
            guard let value = unsafe value, let length = unsafe length else { throw StatusError(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            try unsafe value.pointee = ResultBuffer.make(copying: data).assumingMemoryBound(to: UInt8.self)
            unsafe length.pointee = data.count
        }
    }

    /// Returns text in a buffer that the caller frees.
    ///
    /// Invalid UTF-8 is reported as not found, as in Valet.
    static func returnText(
        _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ length: UnsafeMutablePointer<Int>?,
        _ read: () throws -> Data
    ) -> valet_status {
        unsafe text?.pointee = nil
        unsafe length?.pointee = 0
        return status {
            guard let text = unsafe text else { throw StatusError(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            guard CInput.isUTF8(data) else { throw StatusError(valet_error_item_not_found) }
            guard unsafe length != nil || !data.contains(0) else { throw StatusError(valet_error_embedded_nul) }
            try unsafe text.pointee = ResultBuffer.make(copying: data).assumingMemoryBound(to: CChar.self)
            unsafe length?.pointee = data.count
        }
    }

    /// Returns a Boolean value.
    static func returnBool(_ result: UnsafeMutablePointer<Bool>?, _ find: () throws -> Bool) -> valet_status {
        unsafe result?.pointee = false
        return status {
            guard let result = unsafe result else { throw StatusError(valet_error_null_argument) }
            unsafe result.pointee = try find()
        }
    }

    /// Calls `callback` for each key in byte order, until it returns false.
    static func enumerateKeys(
        _ callback: valet_key_callback?, _ context: UnsafeMutableRawPointer?, _ read: () throws -> [String]
    ) -> valet_status {
        status {
            guard let callback = unsafe callback else { throw StatusError(valet_error_null_argument) }
            for key in try read().sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
                let shouldContinue = unsafe withNULTerminated(key) { unsafe callback(context, $0, key.utf8.count) }
                guard shouldContinue else { break }
            }
        }
    }

    /// Calls `body` with a NUL-terminated copy of the text, which is valid during the call.
    static func withNULTerminated<Result>(_ text: String, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        // The array lives until the body returns. With the NUL in it, it is never empty.
        let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
        return unsafe bytes.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}

/// A buffer that the caller in C owns and that is wiped when it is freed.
///
/// The bytes are preceded by a header with the size of the allocation, so that wiping does not depend on a length from the caller, and
/// followed by a NUL.
enum ResultBuffer {
    /// The alignment of `malloc`, so that the content is aligned as well.
    private static let headerByteCount = 16

    static func make(copying data: Data) throws(StatusError) -> UnsafeMutableRawPointer {
        let byteCount = headerByteCount + data.count + 1
        guard let start = unsafe malloc(byteCount) else { throw StatusError(valet_error_no_memory) }
        // The header, the content and the NUL lie within the allocation.
        unsafe start.storeBytes(of: byteCount, as: Int.self)
        let content = unsafe start + headerByteCount
        unsafe data.copyBytes(to: UnsafeMutableRawBufferPointer(start: content, count: data.count))
        unsafe content.storeBytes(of: 0, toByteOffset: data.count, as: UInt8.self)
        return unsafe content
    }

    static func wipeAndFree(_ content: UnsafeMutableRawPointer) {
        // The header requires a pointer that `make` returned.
        let start = unsafe content - headerByteCount
        let byteCount = unsafe start.load(as: Int.self)
        unsafe wipeMemory(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
        unsafe free(start)
    }
}

extension Data {
    /// Wipes the bytes if they are not shared with another value; otherwise wipes a copy.
    mutating func wipe() {
        // The pointer is used during the call only.
        unsafe withUnsafeMutableBytes { unsafe wipeMemory($0) }
    }
}

/// Whether this process was forked, without exec, from one that uses the keychain.
///
/// False on Apple platforms, whose frameworks do not support such processes.
var isForkedChild: Bool {
    #if canImport(Darwin)
    false
    #else
    keychain_process_is_forked()
    #endif
}

/// Overwrites memory with zeros.
///
/// The compiler does not remove the call although the memory is not read afterward.
func wipeMemory(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    // The buffer has its own length.
    #if canImport(Darwin)
    _ = unsafe memset_s(start, bytes.count, 0, bytes.count)
    #else
    unsafe keychain_wipe(start, bytes.count)
    #endif
}
