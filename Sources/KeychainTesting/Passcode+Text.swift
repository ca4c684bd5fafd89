// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine

extension Passcode {
    /// A passcode that a test names.
    init(text: String) throws(KeychainFailure) {
        let bytes = Array(text.utf8)
        // The bytes are read within the closure.
        self = try unsafe bytes.span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}
#endif
