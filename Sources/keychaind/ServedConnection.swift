// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainPeers
internal import KeychainSystem
internal import Synchronization

/// What the connections of all users use.
struct SharedServices: Sendable {
    /// Returns the keychain of a user, for a connection of a program whose signpost names this store.
    let beginUse: @Sendable (_ userID: UInt32, StoreID?) throws(KeychainFailure) -> UsedKeychain
    /// Called when the connection has ended.
    let endUse: @Sendable (_ userID: UInt32) -> Void
    /// Returns who a program is by what the kernel and its declaration say.
    let identify: @Sendable (PeerFacts, _ declared: Entitlements) throws(KeychainFailure) -> IdentifiedProgram
    /// Nil if no program is identified by its file.
    var inspector: ProgramInspector?
    let contexts = ContextTable()
    /// The users whose processes are served.
    var accounts = Accounts()
    /// Nil if no person is asked, or without agents.
    var agents: Agents?
    /// Nil if no keychain is handed over.
    var keychains: UserKeychains?
    /// Nil if the sessions of users are not watched.
    var sessions: SessionWatch?
    /// Nil if no fingers are verified.
    var fingerprints: Fingerprints?
    /// How long a program may take between two steps of a handover.
    var handoverTimeoutSeconds: UInt32 = 60
}

/// A connection of a program, served by a thread of its own: a call that waits, for example for a slow disk, keeps only its caller waiting.
final class ServedConnection: Sendable {
    /// What the connection does, for the limits of its user.
    enum Use {
        /// Waits for a request since then, on the monotonic clock.
        case idle(sinceNanoseconds: UInt64)
        case busy
        /// Sends events until the program ends the connection.
        case observing
    }

    private let channel: MessageChannel
    private let peer: PacketSocket.ProcessIdentity
    /// Those of the user, while the connection is served.
    private let limits = Mutex<UserLimits?>(nil)
    private let state = Mutex(Use.busy)

    /// Throws if the kernel does not name the process at the other end, or if this process cannot see it.
    init(_ socket: consuming PacketSocket) throws(Errno) {
        let peer = try socket.peer()
        // A process in a foreign namespace has the number 0, as all others there.
        guard peer.processID > 0 else { throw .notPermitted }
        self.peer = peer
        channel = MessageChannel(socket)
    }

    /// The user of the process at the other end.
    var userID: UInt32 { peer.userID }

    var use: Use { state.withLock { $0 } }

    /// Ends the connection after the requests that were received.
    func finish() { channel.socket.stopReceiving() }

    /// Tells the program why it is not served.
    func refuse(_ failure: KeychainFailure) { try? send(Response(.failure(failure))) }

    /// Greets the program, and performs its calls until one side ends the connection.
    ///
    /// `limits` are those of the user. `mayObserve` is asked before the connection is used for an observation. `endOthers` ends the other connections of a user.
    func serve(_ services: SharedServices, _ limits: UserLimits, mayObserve: () -> Bool, endOthers: @escaping (_ userID: UInt32) -> Void) {
        self.limits.withLock { $0 = limits }
        // As long as the process has not ended, its number belongs to it.
        let process = try? ProcessHandle(ofProcess: peer.processID)
        var buffer = MessageChannel.Buffer()
        do throws(MessageChannel.Failure) {
            var inspection = services.inspector?.inspect(process: peer.processID)
            let (declared, storeID, realGroupID) = try greet(&buffer)
            let program = inspection?.confirmedFacts()
            // Not to be served without its identity: it would not find what it has stored with it.
            guard inspection == nil || program != nil else { throw .malformed }
            // keychain-peer waits for its end.
            inspection = nil
            let use = KeychainUse(services, userID: peer.userID, storeID: storeID)
            let identified: IdentifiedProgram
            do throws(KeychainFailure) {
                if storeID != nil { _ = try use.begin() }
                identified = try services.identify(try facts(realGroupID, program, process), declared)
            } catch {
                return try send(Response(.failure(error)))
            }
            let identity = identified.identity
            try send(Response(.identified(identity.level, accessGroups: identified.entitlements.accessGroups)))
            let prompter = prompter(services.agents)
            let handler = CallHandler(
                identity: identity, contexts: services.contexts, process: peer.processID,
                handovers: handovers(services, identity, endOthers),
                logins: services.keychains.map { [peer] in LoginCalls(ofProcessOf: peer.userID, $0) },
                ProgramKeychain(use, identified, prompter, requester: identity.requester(ofProcess: peer.processID)))
            switch try performCalls(&buffer, identity, handler, prompter, services) {
            case .end: break
            case .observation: try observe(&buffer, use, mayObserve)
            case .watch: try watch(&buffer, services.sessions)
            case .fingerprints: try serveFingerprints(&buffer, services)
            case .agent(let scope): try serveAgent(identity, scope, services.agents, mayObserve)
            }
        } catch {
            // The program has ended, or does not follow the protocol. Closing the connection is the answer to both.
        }
    }

    /// A keychain can be adopted by each program of its user, which can read all of it before, except in a sandbox, and released by root only.
    private func handovers(
        _ services: SharedServices, _ identity: PeerIdentity, _ endOthers: @escaping (_ userID: UInt32) -> Void
    ) -> Handovers? {
        guard let keychains = services.keychains else { return nil }
        if case .sandboxed = identity { return nil }
        return Handovers(
            keptKeychain: { [peer] () throws(KeychainFailure) in try keychains.keptKeychain(ofUser: peer.userID) },
            adopt: { [peer] keys throws(KeychainFailure) in try KeychainHandover(adopting: keys, ofUser: peer.userID, keychains) },
            release: { [peer] user throws(KeychainFailure) in
                guard peer.userID == 0 else {
                    throw KeychainFailure(
                        .missingEntitlement,
                        "only root may take a keychain back: any program of the user could do it otherwise, and read everything")
                }
                return try KeychainHandover(releasingKeychainOfUser: user, keychains) { endOthers(user) }
            })
    }

    // MARK: Identification

    /// Exchanges the greetings.
    ///
    /// Returns what the program declares, the store that its signpost names, and the real group of its process, which the kernel attaches to the
    /// packet.
    private func greet(
        _ buffer: inout MessageChannel.Buffer
    ) throws(MessageChannel.Failure) -> (Entitlements, StoreID?, realGroupID: UInt32) {
        let nonce = Identifier128.random().bytes
        let deadline = Deadline.after(seconds: Self.greetingTimeoutSeconds)
        try channel.send(Hello(nonce: nonce).message, until: deadline)
        var realGroupID: UInt32?
        let limit = WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount
        // The descriptor is proof that the program itself has written the packet.
        guard
            let message = try receive(
                &buffer, limit: limit, descriptorCount: 1, until: deadline, onPacket: { realGroupID = $0.groupID }), let realGroupID
        else {
            throw .closed
        }
        channel.socket.refuseDescriptors()
        let identification = try Self.parsed { () throws(MalformedMessage) in try Identification(parsing: message) }
        guard identification.nonce == nonce else { throw .malformed }
        let declared = Entitlements(
            applicationIdentifier: identification.applicationIdentifier, keychainAccessGroups: identification.accessGroups,
            isAppClip: identification.isAppClip)
        return (declared, identification.storeID, realGroupID)
    }

    private static let greetingTimeoutSeconds: UInt32 = 5

    /// Identifies another process of the user, for a program that serves it on a bus.
    ///
    /// Not for a program in a sandbox, which does not see the processes outside.
    private func identification(ofProcess process: Int32, for identity: PeerIdentity, _ services: SharedServices) -> Response {
        do throws(KeychainFailure) {
            if case .sandboxed = identity {
                throw KeychainFailure(.missingEntitlement, "a program in a sandbox does not learn what other processes are")
            }
            let facts = try PeerFacts(ofProcess: process, ofUser: peer.userID, services.inspector)
            let other = try services.identify(facts, Entitlements(applicationIdentifier: "", origin: "keychaind")).identity
            return Response(.identified(other.level, accessGroups: other.name.map { [$0] } ?? []))
        } catch {
            return Response(.failure(error))
        }
    }

    private func facts(_ realGroupID: UInt32, _ program: ProgramFacts?, _ process: ProcessHandle?) throws(KeychainFailure) -> PeerFacts {
        do throws(Errno) {
            var facts = try PeerFacts(of: channel.socket, realGroupID: realGroupID)
            facts.program = program
            let controlGroups = ProcessFile("/proc/\(peer.processID)/cgroup").bytes
            facts.controlGroupSandbox = controlGroups.flatMap { Sandbox.byControlGroups($0) }
            // Not those of another process, which has the number now.
            if process?.hasEnded == false { facts.systemService = controlGroups.flatMap { PeerFacts.systemService(controlGroups: $0) } }
            return facts
        } catch {
            throw KeychainFailure(.notAvailable, "the program cannot be identified: \(error)", cause: .system(errno: error.rawValue))
        }
    }

    // MARK: Calls

    /// What a connection is for after its calls.
    private enum Continuation {
        case end, observation, watch, fingerprints
        case agent(AgentScope)
    }

    /// Performs calls until the program ends the connection, or wants to observe changes or to watch sessions from now on.
    private func performCalls(
        _ buffer: inout MessageChannel.Buffer, _ identity: PeerIdentity, _ handler: CallHandler, _ prompter: AgentPrompter?,
        _ services: SharedServices
    ) throws(MessageChannel.Failure) -> Continuation {
        while true {
            state.withLock { $0 = .idle(sinceNanoseconds: MonotonicClock.nowNanoseconds()) }
            // A program that has stopped would keep the others from the keychain.
            let deadline = handler.isHandingOver ? Deadline.after(seconds: services.handoverTimeoutSeconds) : .never
            guard
                var message = try receive(
                    &buffer, limit: WireProtocol.largestRequestByteCount, until: deadline,
                    onPacket: { _ in state.withLock { $0 = .busy } })
            else { return .end }
            // The only reference to the bytes, so that these are wiped and not a copy.
            defer {
                message.body.wipe()
                SecretArena.wipeStackOfCipher()
            }
            let request = try Self.parsed { () throws(MalformedMessage) in try Request(parsing: message) }
            if case .observeChanges = request.call { return .observation }
            if case .watchSessions = request.call { return .watch }
            if case .serveFingerprints = request.call { return .fingerprints }
            if case .showPrompts(let scope) = request.call { return .agent(scope) }
            if case .agentProgram = request.call {
                try send(Response(services.agents.map { .path($0.program) } ?? .failure(Self.hasNoAgents)))
                continue
            }
            if case .lockWithSession(let user) = request.call {
                try send(
                    Response(to: services.sessions) { sessions throws(KeychainFailure) in
                        try sessions.requireWatcher(peer.userID)
                        try sessions.lock(ofUser: user)
                    })
                continue
            }
            if case .identify(let process) = request.call {
                try send(identification(ofProcess: process, for: identity, services))
                continue
            }
            if case .readRows = request.call {
                try handler.sendRows { response throws(MessageChannel.Failure) in try send(response) }
                continue
            }
            let limit = limits.withLock { $0?.limit(of: request.call) }
            let turn = limit.flatMap { SearchTurn($0) }
            guard limit == nil || turn != nil else {
                try send(Response(.failure(KeychainFailure(.notAvailable, SearchLimit.isReached, cause: .busy))))
                continue
            }
            defer { turn?.release() }
            prompter?.prepare(asksOwnAgentsOnly: request.asksOwnAgentsOnly, turn)
            let response = handler.response(to: request)
            defer {
                response.wipeValues()
                request.wipeValue()
            }
            try send(response)
        }
    }

    /// Sends an event at each change, until the program ends the connection.
    private func observe(
        _ buffer: inout MessageChannel.Buffer, _ use: KeychainUse, _ mayObserve: () -> Bool
    ) throws(MessageChannel.Failure) {
        guard mayObserve() else {
            return try send(
                Response(.failure(KeychainFailure(.notAvailable, "too many programs of the user observe the keychain", cause: .busy))))
        }
        state.withLock { $0 = .observing }
        let observation: any ChangeObservation
        do throws(KeychainFailure) {
            // On the keychain that all programs of the user share, which is watched once for all of them.
            observation = try use.begin().keychain.observeChanges { [channel] in
                // A program that does not read its events has enough of them already: each stands for all changes until it is read.
                try? channel.send(Message(.event), until: .now)
            }
        } catch {
            return try send(Response(.failure(error)))
        }
        defer { observation.cancel() }
        try send(Response(.done))
        // The program sends nothing more.
        _ = try receive(&buffer, limit: 0, until: .never)
    }

    /// Counts the program as a watcher of sessions until it ends the connection.
    private func watch(_ buffer: inout MessageChannel.Buffer, _ sessions: SessionWatch?) throws(MessageChannel.Failure) {
        let response = Response(to: sessions) { sessions throws(KeychainFailure) in try sessions.requireWatcher(peer.userID) }
        guard let sessions, case .done = response.reply else { return try send(response) }
        state.withLock { $0 = .observing }
        sessions.begin()
        defer { sessions.end() }
        try send(response)
        // The program sends nothing more.
        _ = try receive(&buffer, limit: 0, until: .never)
    }

    /// Uses the program for verifying fingers until it ends the connection.
    private func serveFingerprints(_ buffer: inout MessageChannel.Buffer, _ services: SharedServices) throws(MessageChannel.Failure) {
        let response = Response(to: services.sessions) { sessions throws(KeychainFailure) in try sessions.requireWatcher(peer.userID) }
        guard let fingerprints = services.fingerprints, case .done = response.reply else { return try send(response) }
        state.withLock { $0 = .observing }
        try fingerprints.serve(channel, sender: peer.processID, &buffer)
    }

    // MARK: Agents

    /// Keeps the process as an agent until it ends the connection.
    ///
    /// Not one in a sandbox: it could cancel or imitate the prompts of the programs outside.
    private func serveAgent(
        _ identity: PeerIdentity, _ scope: AgentScope, _ agents: Agents?, _ mayObserve: () -> Bool
    ) throws(MessageChannel.Failure) {
        guard let agents else { return try send(Response(.failure(Self.hasNoAgents))) }
        if case .sandboxed = identity {
            let failure = KeychainFailure(.missingEntitlement, "a program in a sandbox shows no prompts of keychaind")
            return try send(Response(.failure(failure)))
        }
        guard mayObserve() else {
            return try send(Response(.failure(KeychainFailure(.notAvailable, "the user has too many agents, or observers", cause: .busy))))
        }
        let process: Int32?
        switch scope {
        case .allProcesses: process = nil
        case .ownProcess: process = peer.processID
        case .parentProcess:
            // As the kernel knows it, also if the agent has another number for it.
            process = ProcessFile("/proc/\(peer.processID)/status").text.flatMap { ProcessFile.field("PPid:", in: $0) }.flatMap {
                Int32($0)
            }
            guard process != nil else {
                return try send(Response(.failure(KeychainFailure(.notAvailable, "the process that has started the agent is not known"))))
            }
        }
        state.withLock { $0 = .observing }
        try agents.serve(Agent(channel, sender: peer.processID, process: process), ofUser: peer.userID)
    }

    private static var hasNoAgents: KeychainFailure { KeychainFailure(.notAvailable, "this service asks no person") }

    private func prompter(_ agents: Agents?) -> AgentPrompter? {
        agents.map { AgentPrompter($0, userID: peer.userID, processID: peer.processID, caller: channel) }
    }

    // MARK: Messages

    private static func parsed<Value>(_ body: () throws(MalformedMessage) -> Value) throws(MessageChannel.Failure) -> Value {
        do throws(MalformedMessage) { return try body() } catch { throw .malformed }
    }

    /// Receives a message of the process that has connected; another process may have inherited the descriptor.
    private func receive(
        _ buffer: inout MessageChannel.Buffer, limit: Int, descriptorCount: Int = 0, until deadline: Deadline,
        onPacket: (PacketSocket.ProcessIdentity) -> Void = { _ in }
    ) throws(MessageChannel.Failure) -> Message? {
        try channel.receive(
            &buffer, limit: limit, descriptorCount: descriptorCount, until: deadline, largeMessages: limits.withLock { $0?.largeRequests }
        ) { sender in
            onPacket(sender)
            return sender.processID == peer.processID
        }
    }

    private func send(_ response: Response) throws(MessageChannel.Failure) {
        let deadline = Deadline.after(seconds: Self.replyTimeoutSeconds)
        let message = response.message
        guard message.body.count <= WireProtocol.largestReplyByteCount else {
            let failure = KeychainFailure(.allocate, "the result has more than 1 GiB: ask for fewer items")
            return try channel.send(Response(.failure(failure), password: response.password).message, until: deadline)
        }
        try channel.send(consume message, until: deadline)
    }

    /// How long the program may take to receive a part of a reply.
    private static let replyTimeoutSeconds: UInt32 = 10
}

extension PeerIdentity {
    fileprivate var level: AssuranceLevel {
        switch self {
        case .anyProgram: .none
        case .sandboxed(let sandbox): sandbox.accessGroup == nil ? .none : .sandbox
        case .program, .systemService: .verifiedFile
        case .programGroup: .credential
        }
    }

    /// The name of the program for a person, with the number of its process: programs of the same name do not share an answer.
    fileprivate func requester(ofProcess process: Int32) -> String {
        let name =
            switch self {
            case .anyProgram: "An unverified program"
            case .sandboxed(let sandbox): "A program in the sandbox \(sandbox.accessGroup ?? "of an unknown application")"
            case .program(let path): path
            case .systemService(let name): "A program of the service \(name)"
            case .programGroup(let group): "The program of the group \(group)"
            }
        return "\(name) (process \(process))"
    }
}

extension Request {
    /// Overwrites the value that an item gets, once the request was performed.
    fileprivate func wipeValue() {
        switch call {
        case .add(let request): request.secret?.wipeShared()
        case .update(let request): request.secret?.wipeShared()
        default: break
        }
    }
}

extension Response {
    fileprivate init(to sessions: SessionWatch?, _ body: (SessionWatch) throws(KeychainFailure) -> Void) {
        do throws(KeychainFailure) {
            guard let sessions else { throw KeychainFailure(.notAvailable, "keychaind watches no sessions") }
            try body(sessions)
            self.init(.done)
        } catch {
            self.init(.failure(error))
        }
    }

    /// Overwrites the values of items, once the response was sent.
    fileprivate func wipeValues() {
        guard case .items(let items) = reply else { return }
        for item in items { item.secret?.wipeShared() }
    }
}
