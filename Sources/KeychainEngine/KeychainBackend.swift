// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The place where a keychain is stored, and the settings that belong to it.
///
/// `LocalKeychain` implements the operations; a back end opens the store that they work on.
package protocol KeychainBackend: Sendable {
    /// The entitlements of the program that uses the keychain.
    var entitlements: Entitlements { get }
    /// How a person is asked for a passcode or password.
    var promptSettings: PromptSettings { get }
    /// The kind of key holder that a new keychain would use.
    var newKeychainHolder: KeyHolderKind { get }

    /// Opens the keychain, and with `creating` creates it first if there is none.
    ///
    /// Throws `.itemNotFound` if there is none and `creating` is false.
    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain

    /// Closes a keychain that `open` returned.
    func close(_ keychain: OpenKeychain)

    /// Returns the rules for new passcodes.
    ///
    /// Throws `.notAvailable` if the rules cannot be read.
    func passcodePolicy() throws(KeychainFailure) -> PasscodePolicy

    /// Records a passcode that is about to be set. For tests.
    func recordNewPasscode(_ passcode: borrowing Passcode) throws(KeychainFailure)

    /// Removes held keys, and counts a lock if possible, where the keychain cannot be opened.
    ///
    /// Returns whether they were removed from the kernel's keyring.
    func lockWithoutOpening(_ extent: LockExtent) -> Bool

    /// Returns `failure` with the location of the store, if the failure does not say what it is about.
    func addingContext(to failure: KeychainFailure) -> KeychainFailure
}

extension KeychainBackend {
    package func close(_ keychain: OpenKeychain) {}
    package func recordNewPasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) {}
    package func lockWithoutOpening(_ extent: LockExtent) -> Bool { false }
    package func addingContext(to failure: KeychainFailure) -> KeychainFailure { failure }
}
