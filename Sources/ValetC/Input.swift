// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation

/// What C gives by pointer and length.
///
/// That as many bytes are there as the length says is the caller's word. C's lengths have no sign, Swift's have one: what is more than
/// half the address space arrives here as less than zero, `valet_nul_terminated` as -1.
enum Input {
    private static let nulTerminated = -1

    /// Bytes of anything.
    static func bytes(_ pointer: UnsafeRawPointer?, _ length: Int) throws(CallFailure) -> UnsafeRawBufferPointer {
        guard length >= 0 else { throw CallFailure(valet_error_invalid_length) }
        guard unsafe pointer != nil || length == 0 else { throw CallFailure(valet_error_null_argument) }
        return unsafe UnsafeRawBufferPointer(start: pointer, count: length)
    }

    /// Bytes that are UTF-8.
    static func utf8(_ pointer: UnsafePointer<CChar>?, _ length: Int) throws(CallFailure) -> UnsafeRawBufferPointer {
        var length = length
        if length == nulTerminated {
            guard let pointer = unsafe pointer else { throw CallFailure(valet_error_null_argument) }
            length = unsafe strlen(pointer)
        }
        let bytes = try unsafe bytes(pointer, length)
        guard unsafe isUTF8(bytes) else { throw CallFailure(valet_error_not_utf8) }
        return unsafe bytes
    }

    /// Text: a key, an identifier, a prompt.
    static func text(_ pointer: UnsafePointer<CChar>?, _ length: Int) throws(CallFailure) -> String {
        try unsafe String(decoding: utf8(pointer, length), as: UTF8.self)
    }

    /// Whether bytes are UTF-8; found without a copy of them, since they may be a secret.
    static func isUTF8(_ bytes: some Sequence<UInt8>) -> Bool {
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }
}
