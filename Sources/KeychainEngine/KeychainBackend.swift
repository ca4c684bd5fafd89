// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainStore

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

    /// Throws if the protector that a new keychain would use cannot be used now.
    func requireProtectorForNewKeychain() throws(KeychainFailure)

    /// Records a passcode that is about to be set. For tests.
    func recordNewPasscode(_ passcode: borrowing Passcode) throws(KeychainFailure)

    /// Removes held keys without opening the keychain; best effort.
    ///
    /// Returns whether they were removed from the kernel's keyring.
    @discardableResult
    func removeHeldKeys(_ extent: LockExtent) -> Bool

    /// Removes held keys, and counts a lock if possible, where the keychain cannot be opened.
    ///
    /// Returns whether they were removed from the kernel's keyring.
    func lockWithoutOpening(_ extent: LockExtent) -> Bool

    /// Calls `onEvent` when the content may have changed, until the result is released.
    ///
    /// `onEvent` returns what it has found, and may be called again if that is no change, or if the content cannot be read.
    func watchContent(_ onEvent: @escaping @Sendable (ContentEvent) -> ContentFinding) throws(KeychainFailure) -> any ContentWatch

    /// Tells the watches of all processes that the keychain was unlocked, which writes nothing into it; best effort.
    func announceUnlock(of keychain: OpenKeychain)

    /// Returns the version of the content of an open keychain.
    func contentVersion(of keychain: OpenKeychain) throws(KeychainFailure) -> ContentVersion

    /// Returns `failure` with the location of the store, if the failure does not say what it is about.
    func addingContext(to failure: KeychainFailure) -> KeychainFailure
}

/// What a watch of a keychain's content has noticed.
package enum ContentEvent: Sendable {
    case written
    /// There may be another store, or none.
    case replaced
}

/// What a look at a keychain's content has found.
package enum ContentFinding: Sendable {
    case changed
    case unchanged
    /// The keychain is damaged, refused, or cannot be reached.
    case unreadable
}

/// A watch of a keychain's content; it ends when it is canceled, or with the last reference to it.
package protocol ContentWatch: AnyObject, Sendable {
    func cancel()
}

extension KeychainBackend {
    package func watchContent(_ onEvent: @escaping @Sendable (ContentEvent) -> ContentFinding) throws(KeychainFailure) -> any ContentWatch {
        throw KeychainFailure(.unimplemented, "the changes of this keychain cannot be observed")
    }

    package func announceUnlock(of keychain: OpenKeychain) {}

    package func contentVersion(of keychain: OpenKeychain) throws(KeychainFailure) -> ContentVersion {
        try keychain.fileStore().contentVersion()
    }

    package func close(_ keychain: OpenKeychain) {}
    package func requireProtectorForNewKeychain() throws(KeychainFailure) {}
    package func recordNewPasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) {}
    package func removeHeldKeys(_ extent: LockExtent) -> Bool { false }
    package func lockWithoutOpening(_ extent: LockExtent) -> Bool { false }
    package func addingContext(to failure: KeychainFailure) -> KeychainFailure { failure }
}
