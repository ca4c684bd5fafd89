// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import KeychainCore

extension SealingFailure {
    /// Nil when nothing failed.
    init?(_ report: keychain_tpm_report) {
        // An array of bytes, which Swift sees as a tuple.
        let text = unsafe withUnsafeBytes(of: report.text) { unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        switch report.outcome {
        case KEYCHAIN_TPM_DONE: return nil
        case KEYCHAIN_TPM_UNAVAILABLE: self = .unavailable(text)
        case KEYCHAIN_TPM_WRONG_AUTHORIZATION: self = .wrongAuthorization
        case KEYCHAIN_TPM_LOCKED_OUT: self = .lockedOut(seconds: report.lockout_seconds == 0 ? nil : report.lockout_seconds)
        case KEYCHAIN_TPM_FOREIGN_OBJECT: self = .foreignObject
        case KEYCHAIN_TPM_BUSY: self = .timedOut
        default: self = .failed(text)
        }
    }
}
