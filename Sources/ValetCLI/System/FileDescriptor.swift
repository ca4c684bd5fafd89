// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainEngine

/// Reading and writing whole values through file descriptors.
enum FileDescriptor {
    /// Writes all of `data`; the error number if that failed.
    static func write(_ data: Data, to descriptor: Int32) -> Int32? {
        // The buffer is used within the closure only.
        unsafe data.withUnsafeBytes { buffer in
            var rest = unsafe buffer[...]
            while unsafe !rest.isEmpty {
                let count = unsafe Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0 {
                    if errno == EINTR { continue }
                    return errno
                }
                unsafe rest = unsafe rest.dropFirst(count)
            }
            return nil
        }
    }

    /// Reads to the end; nil if there are more than `limit` bytes.
    ///
    /// Throws the error number.
    static func readToEnd(of descriptor: Int32, limit: Int) throws(ReadError) -> Data? {
        var data = Data()
        var chunk = [UInt8](repeating: 0, count: 65_536)
        defer { chunk.wipe() }
        while true {
            let count = unsafe read(descriptor, &chunk, chunk.count)
            if count == 0 { return data }
            if count < 0 {
                if errno == EINTR { continue }
                throw ReadError(number: errno)
            }
            data.append(contentsOf: chunk[..<count])
            if data.count > limit { return nil }
        }
    }

    struct ReadError: Error {
        let number: Int32
    }

    static func message(_ number: Int32) -> String {
        // The C library keeps the text for as long as the thread makes no other such call.
        unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
    }
}
