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
            guard let value = unsafe value, let length = unsafe length else { throw CallFailure(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            try unsafe value.pointee = OutputBuffer.make(copying: data).assumingMemoryBound(to: UInt8.self)
            unsafe length.pointee = data.count
        }
    }

    /// Gives bytes that are UTF-8.
    ///
    /// Other bytes are as good as none, as Valet has it.
    static func giveText(
        _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ length: UnsafeMutablePointer<Int>?,
        _ read: () throws -> Data
    ) -> valet_status {
        unsafe text?.pointee = nil
        unsafe length?.pointee = 0
        return statusAnswer {
            guard let text = unsafe text else { throw CallFailure(valet_error_null_argument) }
            var data = try read()
            defer { data.wipe() }
            guard Input.isUTF8(data) else { throw CallFailure(valet_error_item_not_found) }
            guard unsafe length != nil || !data.contains(0) else { throw CallFailure(valet_error_embedded_nul) }
            try unsafe text.pointee = OutputBuffer.make(copying: data).assumingMemoryBound(to: CChar.self)
            unsafe length?.pointee = data.count
        }
    }

    /// Gives a truth value.
    static func give(_ result: UnsafeMutablePointer<Bool>?, _ find: () throws -> Bool) -> valet_status {
        unsafe result?.pointee = false
        return statusAnswer {
            guard let result = unsafe result else { throw CallFailure(valet_error_null_argument) }
            unsafe result.pointee = try find()
        }
    }

    /// Calls back for each key, until that is enough.
    static func giveKeys(
        _ callback: valet_key_callback?, _ context: UnsafeMutableRawPointer?, _ read: () throws -> [String]
    ) -> valet_status {
        statusAnswer {
            guard let callback = unsafe callback else { throw CallFailure(valet_error_null_argument) }
            for key in try read().sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
                let wantsMore = unsafe withNULBehind(key) { unsafe callback(context, $0, key.utf8.count) }
                guard wantsMore else { break }
            }
        }
    }

    /// Lends text to C, ended by NUL.
    static func withNULBehind<Result>(_ text: String, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        // The array lives until the body returns. With the NUL in it, it is never empty.
        let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
        return unsafe bytes.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}
