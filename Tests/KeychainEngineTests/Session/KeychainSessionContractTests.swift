// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing

/// A correct keychain with one planted fault.
final class BrokenSession: Keychain, KeychainSessionProviding {
    enum Fault: CaseIterable, Sendable {
        case isAlwaysUnlocked, staysLocked, locksTooMuch, locksTooLittle, forgetsLocks, unlocksAtNothing
        case takesWrongPasscode, takesSecondPasscode, keepsOldPasscode
        case namesNothing, deletesUnasked, keepsPasscode
        case neverLocksItself, locksItselfSoon, keepsFirstTime, inspectionCountsAsUse
        case remembersState, weakensItems, saysNotFound
    }

    private let good: LocalKeychain
    private let fault: Fault?
    private let firstStatus = Mutex<SessionStatus?>(nil)

    init(_ good: LocalKeychain, _ fault: Fault?) {
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
        case .inspectionCountsAsUse:
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

@Suite("Every keychain satisfies the contract of a keychain with a lock")
struct KeychainSessionContractTests {
    @Test("The keychain in a file, with keys in memory", arguments: KeychainSessionContract.rules)
    func fileKeychain(rule: KeychainSessionContract) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let time = ManualTime()
            let keys = ProcessMemoryKeys(time: time)
            func keychain() throws -> LocalKeychain {
                try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory) { configuration in
                    configuration.processKeys = keys
                    configuration.time = time
                }
            }
            let subject = KeychainSessionContract.Subject(keychain: try keychain(), other: try keychain()) { seconds in
                time.pass(seconds: Double(seconds) + 0.1)
            }
            #expect(rule.violations(of: subject) == [])
        }
    }

    @Test("The keychain in a file, with keys in the kernel's keyring", .waitsForClock, arguments: KeychainSessionContract.rules)
    func fileKeychainWithKernelKeyring(rule: KeychainSessionContract) throws {
        try withLocalKeychain(holder: .automatic) { keychain, home in
            let other = try LocalKeychain.withCheapPasscode(home: home, holder: .automatic)
            let subject = KeychainSessionContract.Subject(keychain: keychain, other: other) { seconds in
                // The kernel expires keys up to two seconds late. Reading the state does not restart the timeout.
                let end = ContinuousClock.now + .seconds(Double(seconds))
                waitUntil(withinSeconds: Double(seconds) + 2) {
                    ContinuousClock.now > end && (try? keychain.sessionStatus().state) != .unlocked
                }
            }
            #expect(rule.violations(of: subject) == [])
        }
    }

    private func memorySubject(_ fault: BrokenSession.Fault?) throws -> KeychainSessionContract.Subject {
        let keychain = try InMemoryKeychain()
        let other = keychain.sharedWithProgram(entitledTo: Entitlements(applicationIdentifier: "in-memory"))
        return KeychainSessionContract.Subject(
            keychain: BrokenSession(keychain.keychain, fault), other: BrokenSession(other.keychain, fault)
        ) { keychain.clock.advance(by: .seconds($0)) }
    }

    @Test("The keychain in memory", arguments: KeychainSessionContract.rules)
    func memoryKeychain(rule: KeychainSessionContract) throws {
        #expect(rule.violations(of: try memorySubject(nil)) == [])
    }

    @Test("A keychain that violates a rule fails", arguments: BrokenSession.Fault.allCases)
    func broken(fault: BrokenSession.Fault) throws {
        let violations = try KeychainSessionContract.rules.flatMap { $0.violations(of: try memorySubject(fault)) }
        #expect(violations != [])
    }
}

@Suite("Auto-lock")
struct AutoLockTests {
    @Test("Reading the state does not keep the keychain unlocked")
    func inspection() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let time = ManualTime()
            let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory) { configuration in
                configuration.processKeys = ProcessMemoryKeys(time: time)
            }
            try keychain.addItem("a", "1")
            try keychain.set("swordfish", autoLock: .after(seconds: 60))
            for _ in 0..<3 {
                #expect(try keychain.sessionStatus().state == .unlocked)
                time.pass(seconds: 20)
            }
            #expect(try keychain.sessionStatus().state == .locked)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychain.secret(of: "a") }
        }
    }

    @Test("Reading the state does not keep the keychain unlocked by the kernel's keyring", .waitsForClock)
    func inspectionWithKernelKeyring() throws {
        try withLocalKeychain(holder: .automatic) { keychain, _ in
            try keychain.addItem("a", "1")
            try keychain.set("swordfish", autoLock: .after(seconds: 1))
            // Every millisecond, so that the timeout would never end if reading the state restarted it.
            #expect(try waitUntil { try keychain.sessionStatus().state == .locked })
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychain.secret(of: "a") }
        }
    }
}
