// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainStore

extension LocalKeychain: KeychainSessionProviding {
    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        try naming { () throws(KeychainFailure) in
            try access.sessionStatus(holderOfNewKeychain: configuration.keyHolder.kindForNewStore)
        }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in try access.unlock(passcode, autoLock: autoLock) }
        }
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in
                do throws(KeychainFailure) {
                    try access.lock(extent)
                } catch {
                    if error.status == .notAvailable { lockWithoutKeybag(extent) }
                    throw error
                }
            }
        }
    }

    /// What was unlocked while the keychain could be opened must go also when it cannot be opened any more.
    ///
    /// The holder is found by the store's identifier, which needs neither keybag nor protector. Whether this works or not, the lock is
    /// answered with what is wrong with the keychain.
    private func lockWithoutKeybag(_ extent: LockExtent) {
        guard let store = try? SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions) else { return }
        defer { store.close() }
        let reader = LockEpochReader(store, configuration: configuration)
        let holder = try? configuration.keyHolder.makeHolder(
            storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try reader.lockEpoch() })
        guard let holder else { return }
        try? KeychainAccess<SQLiteItemStore>.lock(extent, holder, store)
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in try access.setAutoLock(autoLock) }
        }
    }

    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.setPasscode(passcode, autoLock: autoLock) }
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in
                try access.changePasscode(from: current, to: new, rotatingKeys: rotatingKeys, autoLock: autoLock)
            }
        }
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in try access.passcodeRemoval(passcode) }
        }
    }

    package func removePasscode(
        _ passcode: borrowing Passcode, deleting removal: PasscodeRemoval
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try whereNoneIsNotFound { () throws(KeychainFailure) in try access.removePasscode(passcode, deleting: removal) }
        }
    }

    /// A keychain that nobody has made has no passcode.
    private func whereNoneIsNotFound<Result>(
        _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw error.status == .itemNotFound ? KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet") : error
        }
    }
}
