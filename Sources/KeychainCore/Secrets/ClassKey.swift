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
}
