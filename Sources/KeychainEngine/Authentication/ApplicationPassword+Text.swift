// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

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
