// SPDX-License-Identifier: Apache-2.0

/// What keeps a keychain's device secret, and the recovery key for when that is lost.
///
/// Beside `Keychain`, and implemented by whatever implements that: the in-process engine, later perhaps a client of a daemon. A
/// recovery key goes in and out as the text that people write.
package protocol KeychainProtecting: Sendable {
    /// Moves the keychain to another protector, with a new device secret: wholly, or not at all.
    ///
    /// Answers the new recovery key where one was asked for and there was none. Throws `.authFailed` when a passcode is set and
    /// `passcode` is not it, `.duplicateItem` when this protector holds the secret already, and `.notAvailable` when it cannot.
    func setProtector(
        _ kind: DeviceProtectorKind, passcode: borrowing Passcode?, makingRecoveryKey: Bool
    ) throws(KeychainFailure) -> SharedSecretBytes?

    /// Makes a recovery key; an earlier one opens nothing afterwards.
    ///
    /// Throws `.duplicateItem` when there is one and `replacing` is false, `.authFailed` for a wrong or missing passcode.
    func createRecoveryKey(passcode: borrowing Passcode?, replacing: Bool) throws(KeychainFailure) -> SharedSecretBytes

    /// Whether a passcode is set in the keychain that this recovery key opens.
    ///
    /// Throws `.parameter` for a mistyped key, `.authFailed` for that of another keychain.
    func recoveryNeedsPasscode(_ recoveryKey: borrowing SecretBytes) throws(KeychainFailure) -> Bool

    /// Opens the keychain without its protector, and moves it to another one. The recovery key stays what it is.
    ///
    /// Throws as `recoveryNeedsPasscode` and `setProtector`.
    func useRecoveryKey(
        _ recoveryKey: borrowing SecretBytes, protector kind: DeviceProtectorKind, passcode: borrowing Passcode?
    ) throws(KeychainFailure)
}
