// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

/// From what a person typed or a program gave to the bytes that are derived from.
extension Passcode {
    /// The same text typed on two systems can be other bytes; in normalisation form C (Unicode Standard Annex 15) it is the same.
    ///
    /// ASCII is normalised already and is copied straight into memory for keys. Other text passes through a `String`, whose
    /// memory cannot be wiped. Throws `.parameter` for no text at all, and for bytes that are not UTF-8: nobody could type
    /// them again. `name` is what the text is called then.
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

    /// How many characters (Unicode scalars) it has.
    var characterCount: Int {
        // In UTF-8 every scalar has one byte that is no continuation; the bytes are read within the closure.
        unsafe bytes.withBytes { unsafe $0.count { $0 & 0xC0 != 0x80 } }
    }
}

extension ApplicationPassword {
    /// From what a person typed or a program gave: text in one form, so that the same password typed on two systems is the same;
    /// anything else as it is.
    ///
    /// Nil where there is nothing, or no memory. The bytes are read within the call.
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
            // No text, or longer than any text that is typed.
            guard error.status == .parameter else { throw error }
            return try unsafe SecretBytes(copying: bytes)
        }
    }
}
