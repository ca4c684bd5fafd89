// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainPeers
internal import KeychainSystem
internal import Synchronization

/// What all connections share.
struct ServiceParts: Sendable {
    let registrations: RegistrationDirectory
    let contexts = ContextTable()
    /// Returns the keychain of a user, with the entitlements of no program.
    let keychainOfUser: @Sendable (UInt32) throws(KeychainFailure) -> LocalKeychain

    init(registrations: RegistrationDirectory, keychainOfUser: @escaping @Sendable (UInt32) throws(KeychainFailure) -> LocalKeychain) {
        self.registrations = registrations
        self.keychainOfUser = keychainOfUser
    }
}

/// A connection of a program, served by a thread of its own: a call that waits, for example for a slow disk, keeps only its caller waiting.
final class ServedConnection: Sendable {
    /// A message of the program, and the process that has sent it.
    private struct Received {
        let message: Message
        let sender: PacketSocket.ProcessIdentity
    }

    private let channel: MessageChannel
    private let peer: PacketSocket.ProcessIdentity
    /// Since when the connection has waited for a request, on the monotonic clock; nil while it performs one, or with an observation.
    private let idleSince = Mutex<UInt64?>(MonotonicClock.nowNanoseconds())

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

    /// Since when the connection has waited for a request, in nanoseconds on the monotonic clock; nil if it is in use.
    var idleSinceNanoseconds: UInt64? { idleSince.withLock { $0 } }

    /// Ends the connection after the requests that were received.
    func finish() { channel.socket.stopReceiving() }

    /// Tells the program why it is not served.
    func refuse(_ failure: KeychainFailure) { try? send(.failure(failure)) }

    /// Greets the program, and performs its calls until one side ends the connection.
    func serve(_ parts: ServiceParts) {
        var buffer = MessageChannel.Buffer()
        do throws(MessageChannel.Failure) {
            let (declared, realGroupID) = try greet(&buffer)
            let keychain: LocalKeychain
            do throws(KeychainFailure) {
                keychain = try self.keychain(declared, realGroupID: realGroupID, parts)
            } catch {
                return try send(.failure(error))
            }
            try perform(&buffer, keychain, parts)
        } catch {
            // The program has ended, or does not follow the protocol. Closing the connection is the answer to both.
        }
    }

    // MARK: Identification

    /// Exchanges the greetings.
    ///
    /// Returns what the program declares, and the real group of its process, which the kernel attaches to the packet.
    private func greet(_ buffer: inout MessageChannel.Buffer) throws(MessageChannel.Failure) -> (Entitlements, realGroupID: UInt32) {
        var random = SystemRandomNumberGenerator()
        let nonce = (0..<WireProtocol.nonceByteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        try channel.send(Hello(nonce: nonce).message, until: .after(seconds: Self.greetingTimeoutSeconds))
        guard
            let received = try receive(
                &buffer, limit: WireProtocol.largestPacketByteCount, until: .after(seconds: Self.greetingTimeoutSeconds))
        else { throw .closed }
        let identification = try Self.parsed { () throws(MalformedMessage) in try Identification(parsing: received.message) }
        guard identification.nonce == nonce else { throw .malformed }
        let declared = Entitlements(
            applicationIdentifier: identification.applicationIdentifier, keychainAccessGroups: identification.accessGroups,
            isAppClip: identification.isAppClip)
        return (declared, received.sender.groupID)
    }

    private static let greetingTimeoutSeconds: UInt32 = 5

    /// Returns the user's keychain with what the program is entitled to, and tells the program.
    private func keychain(
        _ declared: Entitlements, realGroupID: UInt32, _ parts: ServiceParts
    ) throws(KeychainFailure) -> LocalKeychain {
        let registrations = try parts.registrations.registrations()
        let facts: PeerFacts
        do throws(Errno) {
            facts = try PeerFacts(of: channel.socket, realGroupID: realGroupID)
        } catch {
            throw KeychainFailure(.notAvailable, "the program cannot be identified: \(error)", cause: .system(errno: error.rawValue))
        }
        let identity = PeerIdentity(facts, registrations: registrations)
        let entitlements = identity.entitlements(declared: declared, registrations: registrations)
        let keychain = try parts.keychainOfUser(peer.userID).with(entitlements: entitlements)
        let level: AssuranceLevel =
            switch identity {
            case .anyProgram: .none
            case .programGroup: .credential
            }
        try? send(.identified(level, accessGroups: entitlements.accessGroups))
        return keychain
    }

    // MARK: Calls

    private func perform(
        _ buffer: inout MessageChannel.Buffer, _ keychain: LocalKeychain, _ parts: ServiceParts
    ) throws(MessageChannel.Failure) {
        let handler = CallHandler(keychain, contexts: parts.contexts, process: peer.processID)
        while let received = try receive(&buffer, limit: WireProtocol.largestRequestByteCount, until: .never) {
            idleSince.withLock { $0 = nil }
            var message = received.message
            defer { message.body.wipe() }
            let request = try Self.parsed { () throws(MalformedMessage) in try Request(parsing: message) }
            if case .observeChanges = request.call { return try observe(&buffer, keychain) }
            try send(handler.response(to: request))
            idleSince.withLock { $0 = MonotonicClock.nowNanoseconds() }
        }
    }

    /// Sends an event at each change, until the program ends the connection.
    private func observe(_ buffer: inout MessageChannel.Buffer, _ keychain: LocalKeychain) throws(MessageChannel.Failure) {
        let observation: any ChangeObservation
        do throws(KeychainFailure) {
            observation = try keychain.observeChanges { [channel] in
                // A program that does not read its events has enough of them already: each stands for all changes until it is read.
                try? channel.send(Message(.event), until: .now)
            }
        } catch {
            return try send(.failure(error))
        }
        defer { observation.cancel() }
        try send(.done)
        // The program sends nothing more.
        _ = try receive(&buffer, limit: 0, until: .never)
    }

    // MARK: Messages

    private static func parsed<Value>(_ body: () throws(MalformedMessage) -> Value) throws(MessageChannel.Failure) -> Value {
        do throws(MalformedMessage) { return try body() } catch { throw .malformed }
    }

    /// Receives a message of the process that has connected; another process may have inherited the descriptor.
    private func receive(
        _ buffer: inout MessageChannel.Buffer, limit: Int, until deadline: Deadline
    ) throws(MessageChannel.Failure) -> Received? {
        var first: PacketSocket.ProcessIdentity?
        let message = try channel.receive(&buffer, limit: limit, until: deadline) { sender in
            if first == nil { first = sender }
            return sender.processID == peer.processID && sender == first
        }
        guard let message, let first else { return nil }
        return Received(message: message, sender: first)
    }

    private func send(_ reply: Reply) throws(MessageChannel.Failure) { try send(Response(reply)) }

    private func send(_ response: Response) throws(MessageChannel.Failure) {
        try channel.send(response.message, until: .after(seconds: Self.replyTimeoutSeconds))
    }

    /// How long the program may take to receive a part of a reply.
    private static let replyTimeoutSeconds: UInt32 = 10
}
