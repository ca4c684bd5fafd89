// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import Synchronization
import Valet

/// One run of a command against the keychain.
struct CommandSession {
    let keychain: LocalKeychain
    private let recorder: RecordingKeychain

    /// With a passcode, the keychain is unlocked for this process alone, whatever its state is for others, and nobody is asked.
    init(_ entitlements: Entitlements, passcode: consuming Passcode? = nil) throws(CommandFailure) {
        let given: DescriptorPasscodeVerifier? = if let passcode { DescriptorPasscodeVerifier(passcode) } else { nil }
        do throws(KeychainFailure) {
            var configuration = try KeychainConfiguration(environment: ProcessInfo.processInfo.environment)
            if let given {
                configuration.keyHolder = .processMemory
                configuration.presenceVerifier = given
            }
            keychain = LocalKeychain(configuration: configuration, entitlements: entitlements)
        } catch {
            throw CommandFailure(error)
        }
        recorder = RecordingKeychain(keychain)
        guard let given else { return }
        _ = try requirePasscode()
        // The process ends before long, and the keys with it.
        try performSessionCall { keychain throws(KeychainFailure) in try keychain.unlock(given.passcode, autoLock: .never) }
    }

    /// For commands that are about the keychain as a whole.
    static func forWholeKeychain(passcode: consuming Passcode? = nil) throws(CommandFailure) -> CommandSession {
        try CommandSession(Entitlements(applicationIdentifier: "valet"), passcode: passcode)
    }

    /// Why the last call of the keychain did not succeed; nil if it did.
    var lastFailure: KeychainFailure? { recorder.lastFailure }

    /// Runs `body` with every call of Keychain Services, a valet's too, going to this keychain.
    func perform<Result>(_ body: () throws -> Result) throws(CommandFailure) -> Result {
        do {
            return try CurrentKeychain.with(recorder, body)
        } catch let failure as CommandFailure {
            throw failure
        } catch let failure as KeychainFailure {
            // Made of a status alone, it tells less.
            throw CommandFailure(lastFailure.flatMap { $0 == failure ? $0 : nil } ?? failure)
        } catch let error as KeychainError {
            throw CommandFailure(error, because: lastFailure)
        } catch let error as MigrationError {
            throw CommandFailure(error, because: lastFailure)
        } catch {
            throw CommandFailure(lastFailure ?? KeychainFailure(.internal, "the keychain could not be used"))
        }
    }
}

/// What concerns the lock of the keychain.
extension CommandSession {
    /// Runs a call of the keychain's lock.
    func performSessionCall<Result>(
        _ body: (any KeychainSessionProviding) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    /// The state of the lock, if there is one: before anybody is asked for a passcode that cannot be right.
    func requirePasscode() throws(CommandFailure) -> SessionStatus {
        let status = try performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        guard status.isPasscodeSet else { throw CommandFailure.noPasscode }
        return status
    }

    /// The passcode that was given, or else asked for, of a keychain that has one; nil without one.
    func passcodeIfSet(_ given: consuming Passcode?) throws(CommandFailure) -> Passcode? {
        let status = try performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        guard status.isPasscodeSet else { return nil }
        return try PasscodeInput.passcode.given(given)
    }

    /// Before a person is asked for a secret: throws what storing it would.
    func requireUnlocked(for accessibility: AccessibilityOption) throws(CommandFailure) {
        let status = try performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
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

/// Passes every call on, and remembers the last failure: a valet's errors do not tell the status and the reason.
final class RecordingKeychain: Keychain {
    private let keychain: any Keychain
    private let failure = Mutex<KeychainFailure?>(nil)

    init(_ keychain: any Keychain) {
        self.keychain = keychain
    }

    /// Why the last call did not succeed; nil if it did.
    var lastFailure: KeychainFailure? { failure.withLock { $0 } }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try recording { () throws(KeychainFailure) in try keychain.add(request) }
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try recording { () throws(KeychainFailure) in try keychain.copyMatching(request) }
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try recording { () throws(KeychainFailure) in try keychain.update(request) }
    }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try recording { () throws(KeychainFailure) in try keychain.delete(request) }
    }

    private func recording<Result>(_ call: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        do {
            let result = try call()
            failure.withLock { $0 = nil }
            return result
        } catch {
            failure.withLock { $0 = error }
            // The command tells it, or has an answer for it.
            WarningLog.silence(error.description)
            throw error
        }
    }
}
