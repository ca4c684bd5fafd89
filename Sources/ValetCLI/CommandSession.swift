// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import Synchronization
import Valet

/// The keychain of one run of a command.
struct CommandSession {
    /// The keychain, wherever it is kept.
    let user: UserKeychain
    /// The keychain in its files, for commands about these.
    var keychain: LocalKeychain { user.local }
    private let failures = LastFailure()

    /// Opens the keychain.
    ///
    /// With a passcode, the keychain is unlocked for this process only, whatever its state is for other processes, and no prompt is shown.
    init(_ entitlements: Entitlements, passcode: consuming Passcode? = nil) throws(CommandFailure) {
        let prompter: DescriptorPasscodePrompter? = if let passcode { DescriptorPasscodePrompter(passcode) } else { nil }
        do throws(KeychainFailure) {
            var configuration = try KeychainConfiguration.fromEnvironment()
            if let prompter {
                configuration.keyHolder = .processMemory
                configuration.presencePrompter = prompter
            }
            user = UserKeychain(LocalKeychain(configuration: configuration, entitlements: entitlements))
        } catch {
            throw CommandFailure(error)
        }
        guard let prompter else { return }
        if try performSessionCall({ _ throws(KeychainFailure) in try user.keptKeychain() }) != nil {
            throw CommandFailure(
                .usage, "keychaind keeps this keychain, where an unlock is for all programs of the user, so --passcode-fd cannot be used",
                advice: "Run `valet unlock`, and `valet lock` afterwards.")
        }
        _ = try requirePasscode()
        // The process ends soon, and its keys with it.
        try performSessionCall { keychain throws(KeychainFailure) in try keychain.unlock(prompter.passcode, autoLock: .never) }
    }

    /// Opens the keychain for a command that is about the keychain as a whole.
    static func forWholeKeychain(passcode: consuming Passcode? = nil) throws(CommandFailure) -> CommandSession {
        try CommandSession(Entitlements(applicationIdentifier: SelectedValet.ownApplication), passcode: passcode)
    }

    /// The failure of the last SecItem call; nil if it succeeded.
    var lastFailure: KeychainFailure? { failures.value }

    /// Runs `body` with this keychain as the one that Keychain Services and valets use.
    func perform<Result>(_ body: () throws -> Result) throws(CommandFailure) -> Result {
        do {
            return try CurrentKeychain.with(user, observer: { [failures] in failures.value = $0 }, body)
        } catch let failure as CommandFailure {
            throw failure
        } catch let failure as KeychainFailure {
            // A failure that was made from a status alone has less detail than the one with the same status that was observed.
            throw CommandFailure(lastFailure.flatMap { $0 == failure ? $0 : nil } ?? failure)
        } catch let error as KeychainError {
            throw CommandFailure(error, cause: lastFailure)
        } catch let error as MigrationError {
            throw CommandFailure(error, cause: lastFailure)
        } catch {
            throw CommandFailure(
                lastFailure ?? KeychainFailure(.internal, "an unexpected error occurred; the keychain could not be accessed"))
        }
    }
}

/// The failure of the last SecItem call, which observers on any thread may set.
private final class LastFailure: Sendable {
    private let failure = Mutex<KeychainFailure?>(nil)

    var value: KeychainFailure? {
        get { failure.withLock { $0 } }
        set { failure.withLock { $0 = newValue } }
    }
}

// MARK: - Locking, passcode and protector

extension CommandSession {
    /// Runs a call about the lock or the passcode of the keychain.
    func performSessionCall<Result>(
        _ body: (any KeychainSessionProviding) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(user)
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    /// Runs a call about the protector of the keychain.
    func performProtectorCall<Result>(
        _ body: (any ProtectorManaging) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            throw CommandFailure(protector: error)
        }
    }

    func status() throws(CommandFailure) -> SessionStatus {
        try performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
    }

    /// Returns the state of the lock.
    ///
    /// Throws if no passcode is set, before the command prompts for one that cannot be correct.
    func requirePasscode() throws(CommandFailure) -> SessionStatus {
        let status = try status()
        guard status.isPasscodeSet else { throw CommandFailure.noPasscode }
        return status
    }

    /// Returns the given passcode, or prompts for it.
    ///
    /// Returns nil if no passcode is set.
    func passcodeIfSet(_ given: consuming Passcode?) throws(CommandFailure) -> Passcode? {
        guard try status().isPasscodeSet else { return nil }
        return try PasscodeInput.passcode.orPrompt(given)
    }

    /// Throws unless every item can be read and written.
    func requireUnlocked() throws(CommandFailure) {
        guard try status().state == .unlocked else {
            throw CommandFailure(KeychainFailure(.interactionNotAllowed, "the keychain is locked"))
        }
    }

    /// Throws the error that storing an item with this accessibility would throw, before the command prompts for the secret.
    func requireUnlocked(for accessibility: AccessibilityOption) throws(CommandFailure) {
        let status = try status()
        guard status.isPasscodeSet || accessibility != .whenPasscodeSetThisDeviceOnly else {
            throw CommandFailure(KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet))
        }
        let isAccessible =
            switch accessibility {
            case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: status.state != .neverUnlocked
            case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: status.state == .unlocked
            }
        guard isAccessible else { throw CommandFailure(KeychainFailure(.interactionNotAllowed, "the keychain is locked")) }
    }
}
