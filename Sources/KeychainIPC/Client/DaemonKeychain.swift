// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// The keychain of the user that keychaind keeps, as this program may use it.
///
/// Every call throws `.notAvailable` if keychaind cannot be reached, and never uses another keychain instead.
package final class DaemonKeychain: Sendable {
    private let client: DaemonClient

    package init(_ client: DaemonClient) {
        self.client = client
    }

    /// Returns what keychaind knows about this program.
    package func identity() throws(KeychainFailure) -> (level: AssuranceLevel, accessGroups: [String]) {
        let connection = try client.connect(until: .after(seconds: 5))
        return (connection.level, connection.accessGroups)
    }

    /// Returns the access group that keychaind derives from the program that another process of the user executes; nil if it knows the program
    /// by nothing.
    ///
    /// Throws `.itemNotFound` if the process has ended, or executes another program meanwhile, `.missingEntitlement` for a process of another
    /// user, or if this program is in a sandbox, and `.notAvailable` without keychain-peer.
    package func identity(ofProcess process: Int32) throws(KeychainFailure) -> String? {
        guard case .identified(_, let groups) = try client.reply(to: .identify(process: process)) else { throw Self.unexpectedReply }
        return groups.first
    }

    /// Lets this program read the items of another program's access group until it ends, if a person agrees.
    ///
    /// Throws `.authFailed` with the refusal `.passcodeNotSet` without a passcode, and `.parameter` for a group that a prompt cannot show.
    package func requestAccess(to group: String) throws(KeychainFailure) { try client.requestAccess(to: group) }

    /// What programs may read because a person has granted it.
    package func grants() throws(KeychainFailure) -> [AccessGrant] {
        guard case .grants(let grants) = try client.reply(to: .grants) else { throw Self.unexpectedReply }
        return grants
    }

    /// Lets a program read the items of another program's access group until that is revoked, if a person agrees.
    ///
    /// `program` is the access group of its own that the program has. Throws `.parameter` unless it is one, or if a prompt cannot show both,
    /// `.duplicateItem` if it was granted before, and as `requestAccess`.
    package func grant(program: String, group: String) throws(KeychainFailure) { try perform(.grant(program: program, group: group)) }

    /// Takes a grant back, also from programs that run; throws `.itemNotFound` if there is none.
    package func revoke(program: String, group: String) throws(KeychainFailure) { try perform(.revoke(program: program, group: group)) }

    /// Performs a call without a result.
    private func perform(_ call: Call, in context: AuthenticationContext? = nil) throws(KeychainFailure) {
        guard case .done = try client.reply(to: call, in: context) else { throw Self.unexpectedReply }
    }

    private func items(_ call: Call, _ authentication: Authentication) throws(KeychainFailure) -> [KeychainItem] {
        guard case .items(let items) = try client.reply(to: call, in: authentication.context) else { throw Self.unexpectedReply }
        return items
    }

    private static var unexpectedReply: KeychainFailure { KeychainFailure(.malformed, isOutcomeUnknown: true) }
}

extension DaemonKeychain: Keychain {
    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        guard let item = try items(.add(request), request.authentication).first else { throw Self.unexpectedReply }
        // The reply has no copy of the secret.
        return KeychainItem(
            reference: item.reference, attributes: item.attributes, accessControl: item.accessControl, secret: request.secret)
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try items(.copyMatching(request), request.authentication)
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try perform(.update(request), in: request.authentication.context)
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try perform(.delete(request), in: request.authentication.context)
    }
}

extension DaemonKeychain: KeychainSessionProviding {
    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        guard case .sessionStatus(let status) = try client.reply(to: .sessionStatus) else { throw Self.unexpectedReply }
        return status
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try perform(.unlock(try passcode.shared(), autoLock))
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) { try perform(.lock(extent)) }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) { try perform(.setAutoLock(autoLock)) }

    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try perform(.setPasscode(try passcode.shared(), autoLock))
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        try perform(.changePasscode(from: try current.shared(), to: try new.shared(), rotatesKeys: rotatingKeys, autoLock))
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        guard case .passcodeRemoval(let removal) = try client.reply(to: .passcodeRemoval(try passcode.shared())) else {
            throw Self.unexpectedReply
        }
        return removal
    }

    package func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure) {
        try perform(.removePasscode(try passcode.shared(), removal))
    }
}

extension DaemonKeychain: SurveyableKeychain {
    package func survey() throws(KeychainFailure) -> ItemSurvey {
        guard case .survey(let survey) = try client.reply(to: .survey) else { throw Self.unexpectedReply }
        return survey
    }

    package func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace] {
        guard case .places(let places) = try client.reply(to: .places(account: account, services: services)) else {
            throw Self.unexpectedReply
        }
        return places
    }
}

extension DaemonKeychain: KeychainAuthenticating {
    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        try perform(.requireCanAuthenticate(constraint), in: context)
    }

    package func biometryStatus() throws(KeychainFailure) -> BiometryStatus {
        guard case .biometryStatus(let status) = try client.reply(to: .biometryStatus) else { throw Self.unexpectedReply }
        return status
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: ItemAccessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        try perform(.authenticate(constraint, accessibility, authentication), in: authentication.context)
    }
}

extension DaemonKeychain: ObservableKeychain {
    package func observeChanges(_ onChange: @escaping @Sendable () -> Void) throws(KeychainFailure) -> any ChangeObservation {
        let observation = Observation(client, onChange)
        try observation.start()
        return observation
    }

    /// Receives the events of a connection of its own on a thread of its own.
    private final class Observation: ChangeObservation {
        private struct State {
            var connection: DaemonConnection?
            var isCanceled = false
        }

        private let client: DaemonClient
        private let onChange: @Sendable () -> Void
        private let state = Mutex(State())

        init(_ client: DaemonClient, _ onChange: @escaping @Sendable () -> Void) {
            self.client = client
            self.onChange = onChange
        }

        deinit { cancel() }

        func cancel() {
            // A forked child has the descriptor of its parent's connection, and must not end that.
            guard !ForkDetection.isForkedChild else { return }
            let connection = state.withLock { state in
                state.isCanceled = true
                return state.connection
            }
            connection?.shutDown()
        }

        /// Throws if keychaind cannot be reached now.
        ///
        /// Later it may end, and be started again.
        func start() throws(KeychainFailure) {
            let first = try connected()
            let isStarted = BackgroundThread.start { [weak self] in
                var connection: DaemonConnection? = first
                var pauseNanoseconds = Self.shortestPauseNanoseconds
                while true {
                    if let current = connection {
                        while current.receiveEvent() { self?.notify() }
                        pauseNanoseconds = Self.shortestPauseNanoseconds
                    }
                    guard let observation = self, !observation.state.withLock({ $0.isCanceled }) else { return }
                    connection = try? observation.connected()
                    // The keychain may have changed meanwhile.
                    if connection != nil { observation.notify() }
                    guard connection == nil else { continue }
                    MonotonicClock.sleep(nanoseconds: pauseNanoseconds)
                    pauseNanoseconds = min(2 * pauseNanoseconds, Self.longestPauseNanoseconds)
                }
            }
            guard isStarted else { throw KeychainFailure(.allocate, "no thread to watch the keychain with") }
        }

        private static let shortestPauseNanoseconds: UInt64 = 100_000_000
        private static let longestPauseNanoseconds: UInt64 = 10_000_000_000

        private func connected() throws(KeychainFailure) -> DaemonConnection {
            let deadline = Deadline.after(seconds: 5)
            let connection = try client.connect(until: deadline)
            switch connection.exchange(Request(.observeChanges), until: deadline) {
            case .response(let response):
                if case .failure(let failure) = response.reply { throw failure }
            case .notSent(let failure), .noReply(let failure): throw KeychainFailure(failure, isOutcomeUnknown: false)
            }
            let isCanceled = state.withLock { state in
                state.connection = connection
                return state.isCanceled
            }
            if isCanceled { connection.shutDown() }
            return connection
        }

        private func notify() {
            guard !state.withLock({ $0.isCanceled }) else { return }
            onChange()
        }
    }
}

extension Passcode {
    /// Returns a copy that can have several owners.
    package borrowing func shared() throws(KeychainFailure) -> SharedSecretBytes {
        // The bytes are copied within the closure.
        SharedSecretBytes(try unsafe bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) })
    }
}
