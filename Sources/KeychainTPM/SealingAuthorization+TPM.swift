// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import KeychainCore

extension SealingAuthorization {
    /// Lends the bytes, nil if there are none, for the duration of `body`, which must not keep or copy them.
    borrowing func withPointer(_ body: (UnsafeRawPointer?) throws(SealingFailure) -> Void) throws(SealingFailure) {
        switch self {
        case .none: try body(nil)
        case .bytes(let bytes):
            guard bytes.byteCount == Int(KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT) else {
                throw .failed("an authorization of \(bytes.byteCount) bytes, not \(KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT)")
            }
            // The pointer is used only within `body`.
            try unsafe bytes.withBytes { bytes throws(SealingFailure) in try unsafe body(bytes.baseAddress) }
        }
    }

    /// Whether a chip, which drops zeros at the end, would see nothing of it.
    var isAllZeros: Bool {
        switch self {
        case .none: false
        // Read here and not kept.
        case .bytes(let bytes): unsafe bytes.withBytes { unsafe $0.allSatisfy { $0 == 0 } }
        }
    }
}
