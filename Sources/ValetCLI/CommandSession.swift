// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import Valet

/// One run of a command against the keychain.
struct CommandSession {
    let keychain: LocalKeychain
    private let recorder: RecordingKeychain

    /// With a passcode, the keychain is unlocked for this process alone, whatever its state is for others, and nobody is asked.
    init(_ entitlements: Entitlements, passcode: consuming Passcode? = nil) throws(CommandFailure) {
        let given: GivenPasscode? = if let passcode { GivenPasscode(passcode) } else { nil }
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
        try performOnLock { keychain throws(KeychainFailure) in try keychain.unlock(given.passcode, autoLock: .never) }
    }

    /// For commands that are about the keychain as a whole.
    static func ofCommandItself(passcode: consuming Passcode? = nil) throws(CommandFailure) -> CommandSession {
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
