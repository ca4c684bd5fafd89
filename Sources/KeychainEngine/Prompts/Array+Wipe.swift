// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

extension [UInt8] {
    /// Overwrites the bytes so that the optimiser may not leave it out.
    ///
    /// Copies made before are not reached.
    package mutating func wipe() {
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes { buffer in
            if let base = buffer.baseAddress { unsafe keychain_wipe(base, buffer.count) }
        }
    }
}
