// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

/// State, unlocking and locking.
extension KeychainAccess {
    /// A keychain that nobody has made yet is open and has no passcode.
    package func sessionStatus(newKeychainHolder: KeyHolderKind) throws(KeychainFailure) -> SessionStatus {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.sessionStatus() }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return SessionStatus(state: .unlocked, isPasscodeSet: false, holder: newKeychainHolder, autoLock: nil)
        }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            // Before the passcode is checked: a lock that comes meanwhile counts.
            let epoch = try opened.present().lockEpoch
            let keys = try opened.unlockedKeys(passcode: passcode)
            try hold(keys, of: opened, autoLock, lockEpoch: epoch)
            do throws(KeychainFailure) {
                try finish(keys, of: opened, passcode, autoLock, lockEpoch: epoch)
            } catch {
                // The keychain is unlocked all the same, and the next unlock tries again.
                EngineLog.warn("what a change of keys has left to do could not be done: \(error)")
            }
        }
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else {
                throw KeychainFailure(.authFailed, "no passcode is set, so nothing can be locked")
            }
            try Self.lock(extent, opened.holder, opened.store)
        }
    }

    /// Empties the holder and counts the lock; does all that it can, and throws the first failure.
    ///
    /// The keys go first, and once more after the lock is counted: an unlock that began before it may have held them in between.
    /// What an unlock from before holds later still is given to nobody, since each load compares the counts.
    static func lock(_ extent: LockExtent, _ holder: any KeyHolder, _ store: Store) throws(KeychainFailure) {
        var failure: KeychainFailure?
        func attempt(_ step: () throws(KeychainFailure) -> Void) {
            do throws(KeychainFailure) { try step() } catch { failure = failure ?? error }
        }
        let slots: [KeyHolderSlot] = extent == .everything ? [.unlocked, .firstUnlock] : [.unlocked]
        for slot in slots { attempt { () throws(KeychainFailure) in try holder.remove(slot) } }
        attempt { () throws(KeychainFailure) in
            do throws(KeychainFailure) {
                try store.advanceLockEpoch(extent)
            } catch {
                throw error.prefixed(by: "locked, but programs that keep keys in their own memory could not be told")
                    .withRemedy(.lockAgain)
            }
        }
        for slot in slots { attempt { () throws(KeychainFailure) in try holder.remove(slot) } }
        if let failure { throw failure }
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure(.authFailed, "no passcode is set") }
            let epoch = try opened.present().lockEpoch
            let holder = opened.holder.forKeybag(opened.keybag.identity)
            guard try opened.keybag.lockState() == .unlocked, let held = try holder.load(.unlocked, for: .inspection) else {
                throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first")
            }
            try holder.hold(held.secret, in: .unlocked, timeoutSeconds: autoLock.seconds, lockEpoch: epoch)
        }
    }

    /// Runs `body` on a keychain whose keybag is the store's: a passcode may have come or gone since it was opened.
    func performOnCurrentKeybag<Result>(
        _ body: (Opened) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in
            if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
            return try body(opened)
        }
    }

    /// Gives keys to the holder, under their keybag's generation, and takes them back when a lock or a change came meanwhile.
    ///
    /// Throws, calling for reopening, when the keybag is another one by now: then these keys unlock nothing.
    func hold(
        _ keys: UnlockedKeys, of opened: Opened, _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) {
        let held = try give(keys, to: opened.holder, KeyHolderSlot.ofClassKeys, autoLock, lockEpoch: lockEpoch)
        let present: (keybagGeneration: UInt64, lockEpoch: LockEpoch)
        do throws(KeychainFailure) {
            present = try current(creating: false).present()
        } catch {
            // Whether a lock came cannot be said.
            held.takeBack { _ in true }
            throw error
        }
        held.takeBack { !lockEpoch.keeps($0, at: present.lockEpoch) }
        guard !opened.isKeybagCurrent || present.keybagGeneration == keys.keybagGeneration else {
            held.takeBack { _ in true }
            throw SealedKeychain.keybagChanged
        }
    }

    /// Holds keys in all of the slots, or in none.
    func give(
        _ keys: UnlockedKeys, to holder: any KeyHolder, _ slots: [KeyHolderSlot], _ autoLock: AutoLock, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldTickets {
        let holder = holder.forKeybag(keys.keybagIdentity)
        var held = HeldTickets(holder: holder)
        do throws(KeychainFailure) {
            for slot in slots {
                held.tickets[slot] = try holder.hold(
                    keys.payload(for: slot), in: slot, timeoutSeconds: slot == .unlocked ? autoLock.seconds : nil, lockEpoch: lockEpoch)
            }
        } catch {
            held.takeBack { _ in true }
            throw error
        }
        return held
    }
}

extension LocalKeychain: KeychainSessionProviding {
    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        try naming { () throws(KeychainFailure) in
            try access.sessionStatus(newKeychainHolder: configuration.keyHolder.holderKindForNewStore)
        }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in try access.unlock(passcode, autoLock: autoLock) }
        }
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in
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
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in try access.setAutoLock(autoLock) }
        }
    }

    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.setPasscode(passcode, autoLock: autoLock) }
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in
                try access.changePasscode(from: current, to: new, rotatingKeys: rotatingKeys, autoLock: autoLock)
            }
        }
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try naming { () throws(KeychainFailure) in
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in try access.passcodeRemoval(passcode) }
        }
    }

    package func removePasscode(
        _ passcode: borrowing Passcode, deleting removal: PasscodeRemoval
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in
            try treatingMissingKeychainAsNoPasscode { () throws(KeychainFailure) in try access.removePasscode(passcode, deleting: removal) }
        }
    }

    /// A keychain that nobody has made has no passcode.
    private func treatingMissingKeychainAsNoPasscode<Result>(
        _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw error.status == .itemNotFound ? KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet") : error
        }
    }
}

/// What one unlock has given to a holder.
struct HeldTickets {
    let holder: any KeyHolder
    var tickets: [KeyHolderSlot: UInt64] = [:]

    /// Lets go of exactly that, and of nothing that another unlock has put in its place.
    func takeBack(where isMeant: (KeyHolderSlot) -> Bool) {
        for (slot, ticket) in tickets where isMeant(slot) { holder.discard(slot, ticket: ticket) }
    }
}
