// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// Advice for failures that say themselves what helps.
extension CommandFailure {
    init(_ failure: KeychainFailure, remedy: KeychainRemedy) {
        let advice =
            switch remedy {
            case .makeRoomForKeys:
                "Nothing was changed. `keyctl show @u` lists the keys that take up room; with --passcode-fd a command needs none."
            case .lockAgain:
                "Run `valet lock` again once the keychain can be written, or end the programs that have unlocked it."
            case .closeElsewhere:
                "End the programs that use the keychain, then run the command again."
            case .repair:
                "`valet repair` tells whether it can be mended: nothing is changed unasked. Else put back a backup."
            case .correctPolicy:
                "Nothing was changed. Correct the file, or ask the administrator to."
            case .useNewerVersion:
                "Nothing was changed. Use a newer valet."
            case .useRecoveryKey:
                "Nothing was changed. `valet recovery use` restores access with the recovery key; without one, only a backup helps."
            case .reachTPM:
                "Nothing was changed. See that KEYCHAIN_TPM_TCTI names the TPM and that this user may use it (group tss); if it is lost, use `valet recovery use`."
            case .writeElsewhere:
                "The keychain is as it was. Choose another place for the file, or make room there."
            }
        self.init(failure.isDamage ? .damaged : .unavailable, failure.reason, advice: advice)
    }
}
