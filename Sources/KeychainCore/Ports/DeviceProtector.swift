// SPDX-License-Identifier: Apache-2.0

/// Keeps the device secret of a store, from which its keys are derived.
package protocol DeviceProtector: Sendable {
    var kind: DeviceProtectorKind { get }

    /// Returns where the secret of a store is kept, for people. Not secret.
    func location(for storeID: StoreID) -> String

    /// Returns the secret of a store.
    ///
    /// Throws `.notAvailable` if the secret cannot be obtained, never `.itemNotFound`: without the secret it is unknown which items exist.
    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes
}

/// The kinds of protectors.
///
/// The raw value is the number in the keybag.
package enum DeviceProtectorKind: UInt8, Sendable, CaseIterable {
    case keyFile = 1
    case systemdCredential = 2
    /// A TPM 2.0: the keybag contains the secret sealed by that TPM.
    case tpm2 = 3

    package var name: String {
        switch self {
        case .keyFile: "keyFile"
        case .systemdCredential: "systemdCredential"
        case .tpm2: "tpm2"
        }
    }
}

/// The size of device secrets.
package enum DeviceSecret {
    package static let byteCount = 32
}

/// Manages the protector of a keychain's device secret, and the recovery key in case the protector is lost.
///
/// Implementations of `Keychain` implement it too. Recovery keys are passed in their text form.
package protocol ProtectorManaging: Sendable {
    /// Moves the keychain atomically to another protector with a new device secret.
    ///
    /// Returns the new recovery key if one was requested and there was none. Throws `.authFailed` if a passcode is set and `passcode` is
    /// wrong or nil, `.duplicateItem` if this protector already has the secret, and `.notAvailable` if it cannot be used.
    func setProtector(
        _ kind: DeviceProtectorKind, passcode: borrowing Passcode?, creatingRecoveryKey: Bool
    ) throws(KeychainFailure) -> SharedSecretBytes?

    /// Creates a recovery key; an earlier one becomes invalid.
    ///
    /// Throws `.duplicateItem` if there is one and `replacing` is false, and `.authFailed` for a wrong or missing passcode.
    func createRecoveryKey(passcode: borrowing Passcode?, replacing: Bool) throws(KeychainFailure) -> SharedSecretBytes

    /// Returns whether a passcode is set in the keychain that this recovery key opens.
    ///
    /// `acceptingOlderKeybag` is for a file that is older than the last change of the passcode or the protector; it has the passcode of its
    /// time, or none.
    ///
    /// Throws `.parameter` for a mistyped key, `.authFailed` for another keychain's key, damage if the keychain does not have the
    /// keys for which the recovery key was made, and a failure with the cause `.unexpectedState(.keybagReplaced)` if its keybag is older and
    /// that was not accepted.
    func recoveryNeedsPasscode(_ recoveryKey: borrowing SecretBytes, acceptingOlderKeybag: Bool) throws(KeychainFailure) -> Bool

    /// Opens the keychain without its protector, and moves it to another one. The recovery key stays valid.
    ///
    /// A keychain without a passcode is refused unless `acceptingNoPasscode` is true: an attacker with an earlier copy of the keychain
    /// and its device secret can write such a keychain in place of one with a passcode. With a passcode, `acceptingNoPasscode` has no
    /// effect.
    ///
    /// Throws `.authFailed` for a missing passcode that is not accepted, and the errors of `recoveryNeedsPasscode` and `setProtector`.
    func useRecoveryKey(
        _ recoveryKey: borrowing SecretBytes, protector kind: DeviceProtectorKind, passcode: borrowing Passcode?,
        acceptingNoPasscode: Bool, acceptingOlderKeybag: Bool
    ) throws(KeychainFailure)
}
