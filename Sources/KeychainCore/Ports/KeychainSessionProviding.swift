// SPDX-License-Identifier: Apache-2.0

/// The lock of a keychain: its state, unlocking, locking, and the passcode.
///
/// Implementations of `Keychain` implement it too.
package protocol KeychainSessionProviding: Sendable {
    /// Returns the state. Throws `.notAvailable` if the keychain cannot be opened.
    func sessionStatus() throws(KeychainFailure) -> SessionStatus

    /// Unlocks the keychain. Throws `.authFailed`, without any change, if the passcode is wrong or none is set.
    func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure)

    /// Locks the keychain for all processes of the user. Succeeds if it is locked already.
    ///
    /// Throws `.authFailed` if no passcode is set: without one a keychain cannot be locked.
    func lock(_ extent: LockExtent) throws(KeychainFailure)

    /// Changes when the current unlock ends. Throws `.interactionNotAllowed` while locked.
    func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure)

    /// Sets the first passcode and unlocks.
    ///
    /// Throws `.parameter` if the policy refuses the passcode, and `.duplicateItem` if one is set.
    func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure)

    /// Replaces the passcode and unlocks; with `rotatingKeys` also the class keys.
    ///
    /// Throws `.authFailed` if the current passcode is wrong, and `.parameter` if the policy refuses the new one.
    func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure)

    /// Returns the items that removing the passcode would delete. Show them to a person before calling `removePasscode`.
    ///
    /// Throws `.authFailed` if the passcode is wrong.
    func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval

    /// Removes the passcode and, in the same transaction, the items that `removal` names.
    ///
    /// Throws `.authFailed` if the passcode is wrong, and `.notAvailable` if an item was added that `removal` does not name.
    func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure)
}

/// The state of a keychain's lock and passcode.
package struct SessionStatus: Hashable, Sendable {
    package let state: LockState
    package let isPasscodeSet: Bool
    /// Where keys are kept while unlocked.
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

/// The items that exist only with a passcode.
package struct PasscodeRemoval: Sendable {
    package struct Item: Hashable, Sendable {
        package let id: ItemID
        /// Nil if the item cannot be read.
        ///
        /// Such an item is moved to the quarantine.
        package let name: Name?

        package init(id: ItemID, name: Name?) {
            self.id = id
            self.name = name
        }
    }

    /// The attributes by which a person recognizes an item.
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
