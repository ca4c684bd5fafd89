// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

/// What a test does to the keychain of the program under test.
extension MemoryKeychain {
    /// Sets a passcode where none is set.
    func requirePasscode() throws(KeychainFailure) {
        guard try !sessionStatus().isPasscodeSet else { return }
        do throws(KeychainFailure) {
            try setPasscode(try Passcode(text: "made up"), autoLock: .standard)
        } catch {
            // Set by another thread since.
            guard error.status == .duplicateItem else { throw error }
        }
    }

    func setOrChangePasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        guard try sessionStatus().isPasscodeSet else { return try setPasscode(passcode, autoLock: .standard) }
        try withKnownPasscode { known throws(KeychainFailure) in
            try changePasscode(from: known, to: passcode, rotatingKeys: false, autoLock: .standard)
        }
    }

    func unlockWithKnownPasscode() throws(KeychainFailure) {
        guard try sessionStatus().isPasscodeSet else { return }
        try withKnownPasscode { known throws(KeychainFailure) in try unlock(known, autoLock: .standard) }
    }

    /// No lock is counted: a restart takes what is in memory, and nothing else.
    func forgetKeys() throws(KeychainFailure) {
        for slot in KeyHolderSlot.ofClassKeys { try parts.holder.remove(slot) }
    }

    private func withKnownPasscode(
        _ body: (borrowing Passcode) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        for entry in parts.passcodes.newestFirst {
            do throws(KeychainFailure) {
                return try body(entry.passcode)
            } catch {
                guard error.status == .authFailed else { throw error }
            }
        }
        throw KeychainFailure(.authFailed, "the passcode that is set is not known to the test")
    }
}
#endif
