// SPDX-License-Identifier: Apache-2.0

/// What helps after a failure, where the status does not tell.
package enum KeychainRemedy: Hashable, Sendable {
    /// The key holder has no room for unlocked keys: make room there, or use the passcode for each call.
    case makeRoomForKeys
    /// The keychain was locked, but programs that keep keys in their own memory were not told: end them, or lock again.
    case lockAgain
    /// The administrator's file is to be corrected.
    case correctPolicy
    /// A newer version wrote what this one cannot read.
    case useNewerVersion
    /// The file that was to be written, not the keychain, is where the failure lies.
    case writeElsewhere
    /// Another program uses the keychain: end it.
    case closeElsewhere
    /// What is in the files has not the checksums it should have: a repair tells whether that is all.
    case repair
    /// What the protector held is lost: the recovery key restores access.
    case useRecoveryKey
    /// The TPM is there, perhaps, but not for this program now.
    case reachTPM
}
