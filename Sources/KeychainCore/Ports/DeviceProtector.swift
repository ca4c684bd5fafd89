// SPDX-License-Identifier: Apache-2.0

/// Holds a store's device secret, from which every key begins.
package protocol DeviceProtector: Sendable {
    var kind: DeviceProtectorKind { get }

    /// Where the secret of that store is kept, for people to read. Not a secret.
    func location(for storeID: StoreID) -> String

    /// The secret of that store.
    ///
    /// Throws `.notAvailable`, naming what is missing: without the device secret nothing can be said about any item.
    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes
}

/// The protectors there are.
///
/// The raw value is the number in the keybag.
package enum DeviceProtectorKind: UInt8, Sendable, CaseIterable {
    case keyFile = 1
    case systemdCredential = 2
    /// A TPM 2.0: the keybag holds the secret as only that chip can unseal it.
    case tpm2 = 3

    package var name: String {
        switch self {
        case .keyFile: "keyFile"
        case .systemdCredential: "systemdCredential"
        case .tpm2: "tpm2"
        }
    }
}

/// Length of a device secret.
package enum DeviceSecret {
    package static let byteCount = 32
}

/// What keeps a keychain's device secret, and the recovery key for when that is lost.
///
/// Beside `Keychain`, and implemented by whatever implements that: the in-process engine, later perhaps a client of a daemon. A
/// recovery key goes in and out as the text that people write.
package protocol ProtectorManaging: Sendable {
    /// Moves the keychain to another protector, with a new device secret: wholly, or not at all.
    ///
    /// Answers the new recovery key where one was asked for and there was none. Throws `.authFailed` when a passcode is set and
    /// `passcode` is not it, `.duplicateItem` when this protector holds the secret already, and `.notAvailable` when it cannot.
    func setProtector(
        _ kind: DeviceProtectorKind, passcode: borrowing Passcode?, creatingRecoveryKey: Bool
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
