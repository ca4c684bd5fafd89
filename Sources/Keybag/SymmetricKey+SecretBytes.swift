// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// The way between our memory for keys and swift-crypto's, which wipes its own copy but neither locks it nor keeps it out of dumps.
/// So a `SymmetricKey` is made just before its use and lives no longer.
extension SymmetricKey {
    init(_ secret: borrowing SecretBytes) {
        // The bytes are copied within the closure.
        self = unsafe secret.withBytes { unsafe SymmetricKey(data: $0) }
    }
}

extension SecretBytes {
    init(copying key: SymmetricKey) throws(KeychainFailure) {
        // Both buffers are used within the closures only, and are of one size.
        try unsafe self.init(byteCount: key.bitCount / 8) { destination in
            unsafe key.withUnsafeBytes { unsafe destination.copyMemory(from: $0) }
        }
    }
}
