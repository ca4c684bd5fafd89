// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import Valet

/// One run of a command against the keychain.
struct CommandSession {
    let keychain: LocalKeychain
    private let recorder: RecordingKeychain

    init(_ entitlements: Entitlements) throws(CommandFailure) {
        do {
            let configuration = try KeychainConfiguration(environment: ProcessInfo.processInfo.environment)
            keychain = LocalKeychain(configuration: configuration, entitlements: entitlements)
        } catch {
            throw CommandFailure(error)
        }
        recorder = RecordingKeychain(keychain)
    }

    /// For commands that are about the keychain as a whole.
    static func ofCommandItself() throws(CommandFailure) -> CommandSession {
        try CommandSession(Entitlements(applicationIdentifier: "valet"))
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
            throw CommandFailure(failure)
        } catch let error as KeychainError {
            throw CommandFailure(error, because: lastFailure)
        } catch let error as MigrationError {
            throw CommandFailure(error, because: lastFailure)
        } catch {
            throw CommandFailure(lastFailure ?? KeychainFailure(.internal, "the keychain could not be used"))
        }
    }
}
