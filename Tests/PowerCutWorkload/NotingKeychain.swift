// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Synchronization

/// A keychain that remembers the last failure, with its reason.
final class NotingKeychain: Keychain {
    private let local: LocalKeychain
    private let failure = Mutex<KeychainFailure?>(nil)

    var lastFailure: KeychainFailure? { failure.withLock { $0 } }

    init(_ local: LocalKeychain) {
        self.local = local
    }

    func forgetFailure() { failure.withLock { $0 = nil } }

    func noting<Result>(_ body: (LocalKeychain) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(local)
        } catch {
            failure.withLock { $0 = error }
            throw error
        }
    }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try noting { local throws(KeychainFailure) in try local.add(request) }
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try noting { local throws(KeychainFailure) in try local.copyMatching(request) }
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try noting { local throws(KeychainFailure) in try local.update(request) }
    }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try noting { local throws(KeychainFailure) in try local.delete(request) }
    }
}
