// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine

/// What `valet status --verbose` says about a TPM, in plain words.
enum ChipDescription {
    static func lines(_ chip: KeychainReport.Chip?) -> [(title: String, text: String)] {
        switch chip {
        case nil: return []
        case .silent(let reason):
            return [("TPM", "\(reason). The keychain is open because its secret is held until the system restarts")]
        case .other(let status):
            let warning =
                "this is not the TPM that the keychain was moved to, or it was cleared since: after the next restart the keychain does not open. Now it does: move it with `valet protector set`"
            return [("TPM", status.name), ("Warning", warning)]
        case .status(let status):
            return [("TPM", status.name), ("TPM lockout", lockout(status))] + warnings(status).map { ("Warning", $0) }
        }
    }

    private static func lockout(_ status: SealingDeviceStatus) -> String {
        let count =
            "\(status.failedTryCount) of \(status.largestFailedTryCount) wrong tries counted, one forgiven every \(status.recoverySeconds) s"
        return status.isLockedOut ? "locked out; " + count : count
    }

    /// What weakens the chip's protection against guessing.
    static func warnings(_ status: SealingDeviceStatus) -> [String] {
        guard !status.isLockoutAuthorizationSet else { return [] }
        return [
            "the TPM's lockout authorization is not set, so whoever may use the TPM can reset its count of wrong passcodes; `tpm2_changeauth -c lockout` sets it"
        ]
    }
}
