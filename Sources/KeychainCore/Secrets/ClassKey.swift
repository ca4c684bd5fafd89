// SPDX-License-Identifier: Apache-2.0

/// The key of a protection class.
///
/// Opening an item takes one, and only a `KeyProvider` lends one: decrypting while locked does not compile into anything that
/// could work.
package struct ClassKey: ~Copyable, Sendable {
    package let accessibility: Accessibility
    /// Class keys are renewed; a row says under which one it was written.
    package let generation: UInt32
    package let secret: SecretBytes

    package static let byteCount = 32

    package init(accessibility: Accessibility, generation: UInt32, secret: consuming SecretBytes) {
        self.accessibility = accessibility
        self.generation = generation
        self.secret = secret
    }

    /// A copy of a key that a provider lends, for where two are needed at once.
    init(copying keys: any KeyProvider, _ accessibility: Accessibility, generation: UInt32) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        let secret = try keys.withClassKey(for: accessibility, generation: generation) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            SharedSecretBytes(try unsafe key.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) })
        }
        self.init(accessibility: accessibility, generation: generation, secret: try secret.copy())
    }
}
