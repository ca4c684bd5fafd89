// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What of a keybag's content hangs on the passcode.
struct PasscodePart: Sendable {
    let record: PasscodeRecord
    let presence: PresenceRecord
    /// Only with the protector tpm2.
    let sealedSecret: SealedObject?
}

extension KeybagDocument.Content {
    /// The same with another passcode, or without one.
    ///
    /// The recovery key needs no more than its public half to go on working.
    mutating func setPasscode(_ part: PasscodePart?, secret: PasscodeSecret?, storeID: StoreID) throws(KeychainFailure) {
        passcode = part?.record
        presence = part?.presence
        sealedPasscodeSecret = part?.sealedSecret
        recovery = try recovery?.with(passcodeSecret: secret, storeID: storeID)
    }
}
