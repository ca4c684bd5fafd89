// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// The connections of this process to keychaind.
///
/// A thread that calls takes an idle connection, or makes one, and has it to itself until the reply. keychaind may close a connection that is
/// idle, for example when it is restarted; the next call then makes another one.
package final class DaemonClient: Sendable {
    /// Makes a connection.
    package typealias Connector = @Sendable (Deadline) throws(KeychainFailure) -> MessageChannel

    private let entitlements: Entitlements
    private let storeID: StoreID?
    private let connector: Connector
    private let idle = LockedValue<[DaemonConnection]>([])
    /// The authentication contexts that keychaind has counterparts of.
    private let contexts = LockedValue<Set<Identifier128>>([])
    private let agent: AgentUse?
    /// Whether the program has access on its connection that another one would not have.
    private let needsPresentConnection = LockedValue(false)

    /// Creates the client of a program that declares `entitlements`, and whose signpost names `storeID`.
    ///
    /// Without `launcher`, only agents that other processes have started show prompts for this one.
    package init(
        entitlements: Entitlements, storeID: StoreID? = nil, launcher: (any AgentLauncher)? = nil, connector: @escaping Connector
    ) {
        agent = launcher.map(AgentUse.init)
        self.entitlements = entitlements
        self.storeID = storeID
        self.connector = connector
    }

    // MARK: Calls

    /// Performs a call and returns its reply; throws the failure that keychaind replies.
    ///
    /// A call that only reads is repeated if keychaind ends before it replies. A write is repeated only if keychaind cannot have received it;
    /// otherwise it throws `.notAvailable` with the cause `.outcomeUnknown`.
    ///
    /// A call for which keychaind has to ask a person is performed once more, with an agent of this process where that has a terminal or a
    /// display, and otherwise with one of the session. It has changed nothing before.
    func reply(to call: Call, in context: AuthenticationContext? = nil) throws(KeychainFailure) -> Reply {
        guard let agent else { return try reply(to: call, in: context, asksOwnAgentsOnly: false) }
        let refusal: KeychainFailure
        do throws(KeychainFailure) { return try reply(to: call, in: context, asksOwnAgentsOnly: true) } catch { refusal = error }
        guard refusal.lacksAgent else { throw refusal }
        if case .requireCanAuthenticate = call {
            return agent.launcher.canAsk ? .done : try reply(to: call, in: context, asksOwnAgentsOnly: false)
        }
        guard call.mayAsk else { throw refusal }
        let shared: AgentUse.Shared
        do throws(KeychainFailure) {
            guard agent.launcher.canAsk else { throw refusal }
            guard case .path(let program) = try reply(to: .agentProgram, in: nil, asksOwnAgentsOnly: true) else { throw refusal }
            shared = try agent.begin(program)
        } catch {
            return try replyWithSessionAgent(to: call, in: context, withoutOwn: error)
        }
        defer { agent.end(shared) }
        return try reply(to: call, in: context, asksOwnAgentsOnly: true)
    }

    /// Performs a call for which this process has no agent: keychaind may refuse it, for example in a sandbox, or it does not start.
    ///
    /// `failure` is thrown if the session has none either.
    private func replyWithSessionAgent(
        to call: Call, in context: AuthenticationContext?, withoutOwn failure: KeychainFailure
    ) throws(KeychainFailure) -> Reply {
        do throws(KeychainFailure) {
            return try reply(to: call, in: context, asksOwnAgentsOnly: false)
        } catch {
            throw error.lacksAgent ? failure : error
        }
    }

    private func reply(
        to call: Call, in context: AuthenticationContext?, asksOwnAgentsOnly: Bool
    ) throws(KeychainFailure) -> Reply {
        try ForkDetection.requireNotForked()
        var reference: ContextReference?
        if let context { reference = try self.reference(to: context) }
        let request = Request(call, context: reference, asksOwnAgentsOnly: asksOwnAgentsOnly)
        let deadline = Deadline.after(seconds: call.timeoutSeconds)
        // A restart of keychaind closes all idle connections, each of which costs an attempt.
        for attemptsLeft in (0..<(Self.largestIdleCount + 2)).reversed() {
            let connection = try checkOut(until: deadline)
            switch connection.exchange(request, until: deadline) {
            case .response(let response):
                checkIn(connection)
                if let context, let password = response.password { note(password, in: context) }
                if case .failure(let failure) = response.reply { throw failure }
                return response.reply
            case .notSent(.closed) where attemptsLeft > 0: continue
            case .noReply(.closed) where attemptsLeft > 0 && call.isRepeatable: continue
            case .notSent(let failure): throw KeychainFailure(failure, isOutcomeUnknown: false)
            case .noReply(let failure): throw KeychainFailure(failure, isOutcomeUnknown: !call.isRepeatable)
            }
        }
        throw KeychainFailure(.closed, isOutcomeUnknown: false)
    }

    // MARK: Connections

    private static let largestIdleCount = 8
    private static let connectionTimeoutSeconds: UInt32 = 5

    private func checkOut(until deadline: Deadline) throws(KeychainFailure) -> DaemonConnection {
        if let connection = idle.withLock({ $0.popLast() }) { return connection }
        if needsPresentConnection.withLock(\.self) {
            // On another one, the items of the group would seem to be missing.
            throw KeychainFailure(
                .notAvailable, "keychaind has ended the connection on which this program could read the items of another one",
                cause: .missing)
        }
        return try connect(until: min(deadline, .after(seconds: Self.connectionTimeoutSeconds)))
    }

    /// Lets this program read the items of another program's access group, if a person agrees, until the connection ends.
    ///
    /// For a program that calls from one thread: each further call uses this connection, or fails.
    func requestAccess(to group: String) throws(KeychainFailure) {
        // On a new connection.
        needsPresentConnection.withLock { $0 = false }
        idle.withLock { $0.removeAll() }
        guard case .done = try reply(to: .requestAccess(group: group)) else { throw KeychainFailure(.malformed, isOutcomeUnknown: true) }
        needsPresentConnection.withLock { $0 = true }
    }

    private func checkIn(_ connection: DaemonConnection) {
        idle.withLock { if $0.count < Self.largestIdleCount { $0.append(connection) } }
    }

    /// Makes a connection on which this process is identified.
    package func connect(until deadline: Deadline) throws(KeychainFailure) -> DaemonConnection {
        try DaemonConnection(try connector(deadline), entitlements, storeID: storeID, until: deadline)
    }

    // MARK: Authentication contexts

    /// Returns the reference to a context, and tells keychaind when the context ends.
    private func reference(to context: AuthenticationContext) throws(KeychainFailure) -> ContextReference {
        guard !context.isInvalidated else {
            throw KeychainFailure(.authFailed, "the authentication context was invalidated", refusal: .invalidContext)
        }
        let token = context.token
        if contexts.withLock({ $0.insert(token).inserted }) {
            context.setEndHandler { [weak self] in self?.forget(token) }
        }
        var password = context.isPasswordKeptByKeychain ? ContextReference.Password.kept : .none
        if let given = context.applicationPassword {
            // The bytes are copied within the closure.
            password = .given(
                SharedSecretBytes(
                    try unsafe given.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }))
        }
        return ContextReference(token: token, settings: context.settings, password: password)
    }

    private func note(_ password: Response.ContextPassword, in context: AuthenticationContext) {
        switch password {
        case .none: context.setApplicationPassword(nil)
        case .given: break
        case .entered: context.notePasswordKeptByKeychain()
        }
    }

    /// Best effort: keychaind forgets the context in any case when the last connection of this process ends.
    private func forget(_ token: Identifier128) {
        contexts.withLock { _ = $0.remove(token) }
        do throws(KeychainFailure) { _ = try reply(to: .forgetContext(token)) } catch {}
    }
}

extension DaemonClient {
    /// The socket of the installed service.
    ///
    /// Its directory belongs to root, so nothing but the service can listen there. The path cannot be changed by the environment.
    package static let standardSocketPath = "/run/keychain/keychaind.sock"

    /// Where root registers programs with a group of their own: a file for each, named `GROUP.entitlements`.
    package static let registrationDirectory = "/etc/keychain/entitlements.d"

    /// Connects to the socket at a path.
    package static func connector(toSocketAt path: String) -> Connector {
        { deadline throws(KeychainFailure) in
            do throws(Errno) {
                return MessageChannel(try PacketSocket(connectingTo: path, until: deadline))
            } catch {
                throw unreachable(error, path)
            }
        }
    }

    private static func unreachable(_ error: Errno, _ path: String) -> KeychainFailure {
        switch error {
        case .notFound, .connectionRefused:
            KeychainFailure(
                .notAvailable, "keychaind does not listen at \(path): start it, for example with `systemctl start keychaind.socket`",
                path: path, cause: .missing)
        case .timedOut: KeychainFailure(.notAvailable, "keychaind at \(path) accepts no connection now", path: path, cause: .busy)
        default:
            KeychainFailure(
                .notAvailable, "keychaind at \(path) cannot be reached: \(error)", path: path, cause: .system(errno: error.rawValue))
        }
    }
}

extension Call {
    /// Whether performing the call twice is the same as once.
    var isRepeatable: Bool {
        switch self {
        case .copyMatching, .sessionStatus, .lock, .passcodeRemoval, .requireCanAuthenticate, .observeChanges, .forgetContext,
            .biometryStatus:
            true
        // An unlock counts a wrong passcode, and asking a person twice is confusing.
        case .add, .update, .delete, .unlock, .setAutoLock, .setPasscode, .changePasscode, .removePasscode, .authenticate: false
        // `DaemonHandover` sends these on a connection of its own.
        case .keptKeychain, .beginAdoption, .insertRows, .prepareAdoption, .finishAdoption, .readRows, .beginRelease, .prepareRelease,
            .finishRelease, .setReleasedAside, .abandonAdoption:
            false
        // The module for PAM, keychain-watch, and keychain-fingerprint send these.
        case .unlockAtLogin, .changePasscodeAtLogin, .watchSessions, .lockWithSession, .serveFingerprints, .fingerprintAnswer: false
        case .agentProgram: true
        // Agents send these.
        case .showPrompts, .answer: false
        case .grants, .survey, .places, .identify: true
        case .requestAccess, .grant, .revoke: false
        }
    }

    /// How long a program waits for the reply, in seconds.
    ///
    /// Longer than every wait of keychaind for the call: for a busy store, for a key derivation, or for the answer of a person.
    fileprivate var timeoutSeconds: UInt32 {
        switch self {
        case .add(let request): request.authentication.timeoutSeconds
        case .copyMatching(let request): request.authentication.timeoutSeconds
        case .update(let request): request.authentication.timeoutSeconds
        case .delete(let request): request.authentication.timeoutSeconds
        case .authenticate(_, _, let authentication): authentication.timeoutSeconds
        case .requestAccess, .grant: Authentication().timeoutSeconds
        // Every item gets a new key.
        case .changePasscode(_, _, rotatesKeys: true, _): 600
        // Waiting would keep the thread that releases a context.
        case .forgetContext: 1
        default: Self.standardTimeoutSeconds
        }
    }

    fileprivate static let standardTimeoutSeconds: UInt32 = 30
}

extension Authentication {
    /// Two questions to a person may each be asked three times, and wait for those of another call before.
    fileprivate var timeoutSeconds: UInt32 {
        mayAsk ? Call.standardTimeoutSeconds + 12 * PresenceQuestion.standardTimeoutSeconds : Call.standardTimeoutSeconds
    }
}

extension Call {
    /// Whether the program lets keychaind ask a person.
    fileprivate var mayAsk: Bool {
        switch self {
        case .add(let request): request.authentication.mayAsk
        case .copyMatching(let request): request.authentication.mayAsk
        case .update(let request): request.authentication.mayAsk
        case .delete(let request): request.authentication.mayAsk
        case .authenticate(_, _, let authentication): authentication.mayAsk
        case .requestAccess, .grant: true
        default: false
        }
    }
}

extension KeychainFailure {
    fileprivate var lacksAgent: Bool { status == .interactionNotAllowed && refusal == .notInteractive }
}

/// The agent of this process, which exists while a call needs it.
private final class AgentUse: Sendable {
    /// An agent and the calls that use it.
    final class Shared: Sendable {
        fileprivate let agent: any RunningAgent
        fileprivate let callCount = LockedValue(1)

        fileprivate init(_ agent: any RunningAgent) {
            self.agent = agent
        }
    }

    let launcher: any AgentLauncher
    private let current = LockedValue<Shared?>(nil)
    /// Held while an agent is started or ended.
    private let startLock = TimedLock()

    init(_ launcher: any AgentLauncher) {
        self.launcher = launcher
    }

    /// Returns an agent for a call, which calls `end` with it; concurrent calls share one.
    ///
    /// keychaind ends an agent whose prompt is of no use any more, so one that other calls still use may have ended.
    func begin(_ program: String) throws(KeychainFailure) -> Shared {
        guard startLock.acquire(until: .after(seconds: 10)) else {
            throw KeychainFailure(.interactionNotAllowed, "another call starts an agent, which takes too long", refusal: .timedOut)
        }
        defer { startLock.release() }
        if let shared = current.withLock(\.self), !shared.agent.hasEnded {
            shared.callCount.withLock { $0 += 1 }
            return shared
        }
        let started = Shared(try launcher.launch(program))
        current.withLock { $0 = started }
        return started
    }

    func end(_ shared: Shared) {
        // The next call does not meet an agent that is ending.
        let isHeld = startLock.acquire(until: .after(seconds: 30))
        defer { if isHeld { startLock.release() } }
        let isLast = shared.callCount.withLock { count in
            count -= 1
            return count == 0
        }
        guard isLast else { return }
        current.withLock { if $0 === shared { $0 = nil } }
        shared.agent.end()
    }
}
