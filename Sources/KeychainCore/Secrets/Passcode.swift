// SPDX-License-Identifier: Apache-2.0

/// A passcode, ready for derivation: its text in normalisation form C, as UTF-8, or ASCII as it is.
///
/// Whoever makes one from what a person typed has normalised it; the same passcode typed on two systems is the same bytes.
package struct Passcode: ~Copyable, Sendable {
    /// Longer ones are refused: nobody types them, and each costs time before it is known to be wrong.
    package static let largestByteCount = 1_024

    package let bytes: SecretBytes

    /// Throws `.parameter` when it is longer than `largestByteCount`.
    package init(normalized bytes: consuming SecretBytes) throws(KeychainFailure) {
        guard bytes.byteCount <= Self.largestByteCount else {
            throw KeychainFailure(.parameter, "a passcode or password has at most \(Self.largestByteCount) bytes")
        }
        self.bytes = bytes
    }
}
