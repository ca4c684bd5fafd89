// SPDX-License-Identifier: Apache-2.0

/// The lock of a keychain: state, unlocking, locking, the passcode.
///
/// Beside `Keychain`, and implemented by whatever implements that: the in-process engine, later perhaps a client of a daemon.
package protocol KeychainSessionProviding: Sendable {
    /// Throws `.notAvailable` when the keychain cannot be asked.
    func sessionStatus() throws(KeychainFailure) -> SessionStatus

    /// Throws `.authFailed` for a wrong passcode or when none is set; then nothing was written and nothing has changed.
    func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure)

    /// Locks for every process of the user; locked already is success.
    ///
    /// Throws `.authFailed` when no passcode is set: without one nothing can be locked.
    func lock(_ extent: LockExtent) throws(KeychainFailure)

    /// Changes how long the present unlock lasts.
    ///
    /// Throws `.interactionNotAllowed` while locked.
    func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure)

    /// Sets the first passcode and unlocks.
    ///
    /// Throws `.parameter` for a passcode that the policy refuses, `.duplicateItem` when one is set.
    func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure)

    /// Replaces the passcode and unlocks; with `rotatingKeys` also the class keys.
    ///
    /// Throws `.authFailed` for a wrong current passcode, `.parameter` for a new one that the policy refuses.
    func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure)

    /// What removing the passcode would delete: to be shown to a person before `removePasscode`.
    ///
    /// Throws `.authFailed` for a wrong passcode.
    func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval

    /// Removes the passcode and, in the same transaction, what `removal` names.
    ///
    /// Throws `.authFailed` for a wrong passcode, and `.notAvailable` when an item came that `removal` does not name.
    func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure)
}

/// What can be said about a keychain's lock.
package struct SessionStatus: Hashable, Sendable {
    package let state: LockState
    package let isPasscodeSet: Bool
    /// Where the keys are while unlocked.
    package let holder: KeyHolderKind
    /// Nil while locked, or without a passcode.
    package let autoLock: AutoLock?

    package init(state: LockState, isPasscodeSet: Bool, holder: KeyHolderKind, autoLock: AutoLock?) {
        self.state = state
        self.isPasscodeSet = isPasscodeSet
        self.holder = holder
        self.autoLock = autoLock
    }
}

/// Items that cannot be without a passcode.
package struct PasscodeRemoval: Sendable {
    package struct Item: Hashable, Sendable {
        package let id: ItemID
        /// Nil when the item cannot be read: then it is set aside in the quarantine, for what that is worth without its key.
        package let name: Name?

        package init(id: ItemID, name: Name?) {
            self.id = id
            self.name = name
        }
    }

    /// What a person knows an item by.
    package struct Name: Hashable, Sendable {
        package let service: String
        package let account: String

        package init(service: String, account: String) {
            self.service = service
            self.account = account
        }
    }

    package let items: [Item]

    package init(items: [Item]) {
        self.items = items
    }
}
