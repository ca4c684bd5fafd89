// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Synchronization

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
