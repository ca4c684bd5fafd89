// SPDX-License-Identifier: Apache-2.0
import KeychainCore

extension SecretBytes {
    init(_ bytes: [UInt8]) throws(KeychainFailure) {
        // The region is as long as the array.
        try unsafe self.init(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    // Copied while they are lent.
    var bytes: [UInt8] { unsafe withBytes { unsafe Array($0) } }
}
