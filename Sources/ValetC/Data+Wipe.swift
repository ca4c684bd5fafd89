// SPDX-License-Identifier: Apache-2.0
internal import Foundation

extension Data {
    /// Wipes the bytes, where nobody else holds them too.
    mutating func wipe() {
        // The bytes are ours for the length of the call.
        unsafe withUnsafeMutableBytes { unsafe wipeMemory($0) }
    }
}
