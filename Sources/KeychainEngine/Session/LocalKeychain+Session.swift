// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

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
            try whereNoneIsNotFound { () throws(KeychainFailure) in try access.lock(extent) }
        }
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
