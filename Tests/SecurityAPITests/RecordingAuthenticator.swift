// SPDX-License-Identifier: Apache-2.0

import KeychainCore
import Synchronization

/// A keychain that keeps nothing and asks nobody: it remembers what was to be authenticated, and answers as it was told.
final class RecordingAuthenticator: Keychain, KeychainAuthenticating {
    struct Request: Sendable {
        let constraint: AccessControl.Constraint
        let accessibility: Accessibility?
        let authentication: Authentication
    }

    private struct State {
        var requests: [Request] = []
        var requiredConstraints: [AccessControl.Constraint] = []
    }

    private let state = Mutex(State())
    private let keychain = RecordingKeychain()
    /// What `requireAuthenticable` throws.
    private let obstacle: KeychainFailure?
    /// What stands in for the person.
    private let answer: @Sendable (Request) -> KeychainFailure?

    init(obstacle: KeychainFailure? = nil, answer: @escaping @Sendable (Request) -> KeychainFailure? = { _ in nil }) {
        self.obstacle = obstacle
        self.answer = answer
    }

    convenience init(failing failure: KeychainFailure) {
        self.init { _ in failure }
    }

    var requests: [Request] { state.withLock { $0.requests } }
    var requiredConstraints: [AccessControl.Constraint] { state.withLock { $0.requiredConstraints } }
    var itemRequests: RecordingKeychain.Requests { keychain.requests }

    func requireAuthenticable(_ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        state.withLock { $0.requiredConstraints.append(constraint) }
        if let obstacle { throw obstacle }
    }

    func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        let request = Request(constraint: constraint, accessibility: accessibility, authentication: authentication)
        state.withLock { $0.requests.append(request) }
        if let failure = answer(request) { throw failure }
    }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem { try keychain.add(request) }
    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] { try keychain.copyMatching(request) }
    func update(_ request: UpdateRequest) throws(KeychainFailure) { try keychain.update(request) }
    func delete(_ request: DeleteRequest) throws(KeychainFailure) { try keychain.delete(request) }
}
