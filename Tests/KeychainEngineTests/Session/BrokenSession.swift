// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Synchronization

/// A good keychain with one fault put in front of it.
final class BrokenSession: Keychain, KeychainSessionProviding {
    enum Fault: CaseIterable, Sendable {
        case isAlwaysUnlocked, staysLocked, locksTooMuch, locksTooLittle, forgetsLocks, unlocksAtNothing
        case takesWrongPasscode, takesSecondPasscode, keepsOldPasscode
        case namesNothing, deletesUnasked, keepsPasscode
        case neverLocksItself, locksItselfSoon, keepsFirstTime, takesLookingForUse
        case remembersState, weakensItems, saysNotFound
    }

    private let good: MemoryKeychain
    private let fault: Fault?
    private let firstStatus = Mutex<SessionStatus?>(nil)

    init(_ good: MemoryKeychain, _ fault: Fault?) {
        self.good = good
        self.fault = fault
    }

    // MARK: Items

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        guard fault == .weakensItems else { return try good.add(request) }
        var request = request
        request.accessControl = AccessControl(.always)
        return try good.add(request)
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        do throws(KeychainFailure) {
            return try good.copyMatching(request)
        } catch {
            let isHidden = fault == .saysNotFound && error.status == .interactionNotAllowed
            throw isHidden ? KeychainFailure(.itemNotFound, "no such item") : error
        }
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) { try good.update(request) }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) { try good.delete(request) }

    // MARK: State

    func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        let status = try good.sessionStatus()
        switch fault {
        case .takesLookingForUse:
            if let autoLock = status.autoLock { try good.setAutoLock(autoLock) }
            return status
        case .isAlwaysUnlocked: return status.with(state: .unlocked)
        case .staysLocked where status.isPasscodeSet: return status.with(state: .locked)
        case .remembersState:
            return firstStatus.withLock { first in
                first = first ?? status
                return first ?? status
            }
        default: return status
        }
    }

    func lock(_ extent: LockExtent) throws(KeychainFailure) {
        switch fault {
        case .locksTooMuch: try good.lock(.everything)
        case .locksTooLittle: try good.lock(.whenUnlocked)
        case .forgetsLocks: _ = try good.sessionStatus()
        default: try good.lock(extent)
        }
    }

    func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        guard fault != .unlocksAtNothing else { return }
        do throws(KeychainFailure) {
            try good.unlock(passcode, autoLock: changed(autoLock))
        } catch {
            guard fault == .takesWrongPasscode, error.status == .authFailed else { throw error }
        }
    }

    func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        guard fault != .keepsFirstTime else { return }
        try good.setAutoLock(changed(autoLock))
    }

    private func changed(_ autoLock: AutoLock) -> AutoLock {
        switch fault {
        case .neverLocksItself: .never
        case .locksItselfSoon: .after(seconds: 1)
        default: autoLock
        }
    }

    // MARK: Passcode

    func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try good.setPasscode(passcode, autoLock: changed(autoLock))
        } catch {
            guard fault == .takesSecondPasscode, error.status == .duplicateItem else { throw error }
        }
    }

    func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        guard fault != .keepsOldPasscode else { return try good.unlock(current, autoLock: autoLock) }
        try good.changePasscode(from: current, to: new, rotatingKeys: rotatingKeys, autoLock: autoLock)
    }

    func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        let removal = try good.passcodeRemoval(passcode)
        return fault == .namesNothing ? PasscodeRemoval(items: []) : removal
    }

    func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure) {
        switch fault {
        case .keepsPasscode: try good.unlock(passcode, autoLock: .standard)
        case .deletesUnasked: try good.removePasscode(passcode, deleting: try good.passcodeRemoval(passcode))
        default: try good.removePasscode(passcode, deleting: removal)
        }
    }
}

extension SessionStatus {
    fileprivate func with(state: LockState) -> SessionStatus {
        SessionStatus(state: state, isPasscodeSet: isPasscodeSet, holder: holder, autoLock: autoLock)
    }
}
