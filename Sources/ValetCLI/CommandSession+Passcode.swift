// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// What concerns the lock of the keychain.
extension CommandSession {
    /// Runs a call of the keychain's lock.
    func performOnLock<Result>(_ body: (any KeychainSessionProviding) throws(KeychainFailure) -> Result) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    /// The state of the lock, if there is one: before anybody is asked for a passcode that cannot be right.
    func requirePasscode() throws(CommandFailure) -> SessionStatus {
        let status = try performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        guard status.isPasscodeSet else { throw CommandFailure.noPasscode }
        return status
    }

    /// The passcode that was given, or else asked for, of a keychain that has one; nil without one.
    func passcodeIfSet(_ given: consuming Passcode?) throws(CommandFailure) -> Passcode? {
        let status = try performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        guard status.isPasscodeSet else { return nil }
        return try PasscodeInput.passcode.given(given)
    }

    /// Before a person is asked for a secret: throws what storing it would.
    func requireUnlocked(for accessibility: AccessibilityOption) throws(CommandFailure) {
        let status = try performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        guard status.isPasscodeSet || accessibility != .whenPasscodeSetThisDeviceOnly else {
            throw CommandFailure(KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet))
        }
        let state = status.state
        let isEnough =
            switch accessibility {
            case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: state != .neverUnlocked
            case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: state == .unlocked
            }
        guard isEnough else { throw CommandFailure(KeychainFailure(.interactionNotAllowed, "the keychain is locked")) }
    }
}
