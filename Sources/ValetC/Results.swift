// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation

/// What C gets through pointers.
///
/// A result pointer is the caller's and points to room for its type, or is NULL.
enum Output {
    /// Gives bytes.
    static func give(
        _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ length: UnsafeMutablePointer<Int>?,
        _ read: () throws -> Data
    ) -> valet_status {
        unsafe value?.pointee = nil
        unsafe length?.pointee = 0
        return statusAnswer {
            guard let value = unsafe value, let length = unsafe length else { throw StatusError(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            try unsafe value.pointee = ResultBuffer.make(copying: data).assumingMemoryBound(to: UInt8.self)
            unsafe length.pointee = data.count
        }
    }

    /// Gives bytes that are UTF-8.
    ///
    /// Other bytes are as good as none, as Valet has it.
    static func returnText(
        _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ length: UnsafeMutablePointer<Int>?,
        _ read: () throws -> Data
    ) -> valet_status {
        unsafe text?.pointee = nil
        unsafe length?.pointee = 0
        return statusAnswer {
            guard let text = unsafe text else { throw StatusError(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            guard Input.isUTF8(data) else { throw StatusError(valet_error_item_not_found) }
            guard unsafe length != nil || !data.contains(0) else { throw StatusError(valet_error_embedded_nul) }
            try unsafe text.pointee = ResultBuffer.make(copying: data).assumingMemoryBound(to: CChar.self)
            unsafe length?.pointee = data.count
        }
    }

    /// Gives a truth value.
    static func give(_ result: UnsafeMutablePointer<Bool>?, _ find: () throws -> Bool) -> valet_status {
        unsafe result?.pointee = false
        return statusAnswer {
            guard let result = unsafe result else { throw StatusError(valet_error_null_argument) }
            unsafe result.pointee = try find()
        }
    }

    /// Calls back for each key, until that is enough.
    static func enumerateKeys(
        _ callback: valet_key_callback?, _ context: UnsafeMutableRawPointer?, _ read: () throws -> [String]
    ) -> valet_status {
        statusAnswer {
            guard let callback = unsafe callback else { throw StatusError(valet_error_null_argument) }
            for key in try read().sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
                let wantsMore = unsafe withNULTerminated(key) { unsafe callback(context, $0, key.utf8.count) }
                guard wantsMore else { break }
            }
        }
    }

    /// Lends text to C, ended by NUL.
    static func withNULTerminated<Result>(_ text: String, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        // The array lives until the body returns. With the NUL in it, it is never empty.
        let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
        return unsafe bytes.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}

/// Memory that is handed to C, and wiped when it comes back.
///
/// In front of it stands how much it is, since a caller may have forgotten or changed what it was told. Behind it stands a NUL.
enum ResultBuffer {
    /// As `malloc` aligns, so that what follows is aligned too.
    private static let headerByteCount = 16

    static func make(copying data: Data) throws(StatusError) -> UnsafeMutableRawPointer {
        let byteCount = headerByteCount + data.count + 1
        guard let start = unsafe malloc(byteCount) else { throw StatusError(valet_error_no_memory) }
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

extension Data {
    /// Wipes the bytes, where nobody else holds them too.
    mutating func wipe() {
        // The bytes are ours for the length of the call.
        unsafe withUnsafeMutableBytes { unsafe wipeMemory($0) }
    }
}

#if canImport(Darwin)
internal import Darwin
#else
// Not KeychainCore: this module is also built for Apple platforms, where there is no engine.
internal import CKeychainShims
#endif

/// Overwrites memory with zeros, in a way that the compiler does not leave out although nobody reads them.
func wipeMemory(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    // The buffer tells its own length.
    #if canImport(Darwin)
    _ = unsafe memset_s(start, bytes.count, 0, bytes.count)
    #else
    unsafe keychain_wipe(start, bytes.count)
    #endif
}
