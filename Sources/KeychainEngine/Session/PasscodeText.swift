// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

/// Passcodes from typed text.
extension Passcode {
    /// Normalizes typed text to form C (Unicode Standard Annex 15), so that the same text from two systems has the same bytes.
    ///
    /// ASCII is normalized already and is copied directly to key memory. Other text passes through a `String`, whose memory cannot be
    /// wiped. Throws `.parameter` for empty text, and for bytes that are not UTF-8 and therefore could not be typed again.
    /// Failures call the text `name`. The bytes are read within the call.
    package init(typed bytes: UnsafeRawBufferPointer, name: String = "passcode") throws(KeychainFailure) {
        guard unsafe !bytes.isEmpty else { throw KeychainFailure(.parameter, "the \(name) is empty") }
        // The bytes are read within this call only.
        let isASCII = unsafe bytes.allSatisfy { $0 < 0x80 }
        if isASCII {
            let secret = try unsafe SecretBytes(copying: bytes)
            try self.init(normalized: secret)
            return
        }
        guard let text = unsafe String(validating: bytes, as: UTF8.self) else {
            throw KeychainFailure(.parameter, "the \(name) is not UTF-8 text")
        }
        var normalized = Array(text.precomposedStringWithCanonicalMapping.utf8)
        // Wiped before it is freed; the buffer has room for exactly these bytes.
        defer { for index in normalized.indices { normalized[index] = 0 } }
        let count = normalized.count
        let secret = try unsafe SecretBytes(byteCount: count) { buffer in unsafe buffer.copyBytes(from: normalized) }
        try self.init(normalized: secret)
    }

    /// The number of characters (Unicode scalars).
    var characterCount: Int {
        // In UTF-8 every scalar has one byte that is not a continuation byte. The bytes are read within the closure.
        unsafe bytes.withBytes { unsafe $0.count { $0 & 0xC0 != 0x80 } }
    }
}

extension ApplicationPassword {
    /// Creates a password from typed text or from the bytes of a program.
    ///
    /// Text is normalized as a passcode is; other bytes are used unchanged. Returns nil for no bytes, or without memory. The bytes are
    /// read within the call.
    package convenience init?(given bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return nil }
        do throws(KeychainFailure) {
            self.init(try unsafe Self.normalized(bytes))
        } catch {
            return nil
        }
    }

    private static func normalized(_ bytes: UnsafeRawBufferPointer) throws(KeychainFailure) -> SecretBytes {
        do throws(KeychainFailure) {
            let text = try unsafe Passcode(typed: bytes)
            // The bytes are copied within the closure.
            return try unsafe text.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        } catch {
            // Not text, or longer than a passcode may be.
            guard error.status == .parameter else { throw error }
            return try unsafe SecretBytes(copying: bytes)
        }
    }
}
