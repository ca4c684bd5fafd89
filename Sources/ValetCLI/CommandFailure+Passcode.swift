// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// What went wrong with a passcode, and what to do then.
extension CommandFailure {
    static let noPasscode = CommandFailure(
        .unavailable, "no passcode is set, so the keychain is never locked", advice: "Set one with `valet passcode set`."
    )

    init(passcode failure: KeychainFailure) {
        guard failure.remedy == nil else {
            self.init(failure)
            return
        }
        if case .lockedOut = failure.refusal {
            self.init(
                .unavailable, failure.reason,
                advice:
                    "Nothing was changed. The TPM forgives wrong passcodes with time; `valet status --verbose` shows how many it has counted."
            )
            return
        }
        switch failure.status {
        case .authFailed:
            self.init(.unavailable, failure.reason, advice: "Nothing was changed. Run the command again with the right one.")
        case .parameter:
            self.init(.usage, failure.reason, advice: "Nothing was changed. Run the command again with another one.")
        case .duplicateItem:
            self.init(.alreadyThere, failure.reason, advice: "Change it with `valet passcode change`.")
        default:
            self.init(failure)
        }
    }
}
