// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem
internal import Synchronization

/// A connection of a program to keychaind, used by one thread at a time.
package final class DaemonConnection: Sendable {
    /// How an exchange of a request and a reply has ended.
    enum Exchange {
        case response(Response)
        /// keychaind has not received the whole request, and does nothing.
        case notSent(MessageChannel.Failure)
        /// keychaind may have performed the request.
        case noReply(MessageChannel.Failure)
    }

    /// How sure keychaind is which program this is.
    package let level: AssuranceLevel
    /// The access groups that keychaind gives to this program.
    package let accessGroups: [String]
    private let channel: MessageChannel
    private let buffer: Mutex<MessageChannel.Buffer>
    private let activeWait = Mutex(ActiveWait())

    /// Tells keychaind what this program declares.
    ///
    /// Throws the failure with which keychaind refuses the program, and `.notAvailable` if it does not answer or speaks another version.
    package init(
        _ channel: MessageChannel, _ entitlements: Entitlements, storeID: StoreID?, until deadline: Deadline
    ) throws(KeychainFailure) {
        var buffer = MessageChannel.Buffer()
        let reply: Reply
        do throws(MessageChannel.Failure) {
            reply = try Self.greet(channel, &buffer, entitlements, storeID, until: deadline)
        } catch {
            throw KeychainFailure(error, isOutcomeUnknown: false)
        }
        switch reply {
        case .identified(let level, let accessGroups): (self.level, self.accessGroups) = (level, accessGroups)
        case .failure(let refusal): throw refusal
        default: throw KeychainFailure(.malformed, isOutcomeUnknown: false)
        }
        self.channel = channel
        self.buffer = Mutex(buffer)
    }

    private static func greet(
        _ channel: MessageChannel, _ buffer: inout MessageChannel.Buffer, _ entitlements: Entitlements, _ storeID: StoreID?,
        until deadline: Deadline
    ) throws(MessageChannel.Failure) -> Reply {
        let first = try channel.receive(&buffer, until: deadline) { message throws(MalformedMessage) -> Result<Hello, Refusal> in
            // A service that cannot serve another connection says so at once.
            if message.kind == .reply { return .failure(Refusal(reply: try Response(parsing: message).reply)) }
            return .success(try Hello(parsing: message))
        }
        let hello: Hello
        switch first {
        case .success(let greeting): hello = greeting
        case .failure(let refusal): return refusal.reply
        }
        guard hello.versions.contains(WireProtocol.version) else { throw .malformed }
        let message = Identification(nonce: hello.nonce, entitlements, storeID: storeID).message
        // Any descriptor: see `WireProtocol`.
        let event: WakeupDescriptor
        do throws(Errno) { event = try WakeupDescriptor() } catch { throw .system(error) }
        try channel.send(consume message, passing: event.descriptor, until: deadline)
        return try channel.receive(&buffer, until: deadline) { message throws(MalformedMessage) in try Response(parsing: message) }.reply
    }

    private struct Refusal: Error {
        let reply: Reply
    }

    /// Sends a request and waits for the reply.
    func exchange(_ request: Request, until deadline: Deadline) -> Exchange {
        do throws(MessageChannel.Failure) {
            try send(request, until: deadline)
        } catch {
            return .notSent(error)
        }
        // All others wait for the disk, a key derivation, or a person.
        if request.call.isRepeatable { activeWait.withLock { $0.wait { channel.socket.isReadable } } }
        return buffer.withLock { buffer in
            do throws(MessageChannel.Failure) {
                return .response(
                    try channel.receive(&buffer, until: deadline) { message throws(MalformedMessage) in try Response(parsing: message) })
            } catch {
                return .noReply(error)
            }
        }
    }

    /// Sends a request, for whose reply `nextReply` waits.
    ///
    /// If it throws, keychaind has not received the whole request, and does nothing.
    func send(_ request: Request, until deadline: Deadline) throws(MessageChannel.Failure) {
        let message = request.message
        guard message.body.count <= WireProtocol.largestRequestByteCount else { throw .tooLarge }
        try channel.send(consume message, until: deadline)
    }

    /// Waits for a further reply to a request that has several.
    func nextReply(until deadline: Deadline) throws(KeychainFailure) -> Reply {
        let outcome = buffer.withLock { buffer -> Result<Reply, MessageChannel.Failure> in
            do throws(MessageChannel.Failure) {
                return .success(
                    try channel.receive(&buffer, until: deadline) { message throws(MalformedMessage) in try Response(parsing: message) }
                        .reply)
            } catch {
                return .failure(error)
            }
        }
        switch outcome {
        case .success(let reply): return reply
        case .failure(let failure): throw KeychainFailure(failure, isOutcomeUnknown: false)
        }
    }

    /// Waits for the next event; returns false at the end of the connection, or if something else comes.
    func receiveEvent() -> Bool {
        buffer.withLock { buffer in
            do throws(MessageChannel.Failure) {
                return try channel.receive(&buffer, until: .never) { message throws(MalformedMessage) in message.kind == .event }
            } catch {
                return false
            }
        }
    }

    /// Returns when keychaind has ended the connection, while another thread may use it.
    func waitForEnd() { channel.socket.waitForEnd() }

    /// Ends the connection, also for a thread that waits for an event.
    func shutDown() { channel.socket.shutDown() }
}

/// Waits for a reply without giving up the processor, as long as replies come soon.
///
/// While a thread sleeps, its processor may sleep too. On an idle machine, waking both processors takes twice as long as all that keychaind does for
/// a short call. Where all processors are busy, such a wait only takes time from others, so after each reply that came too late, twice as many
/// replies are waited for by sleeping.
struct ActiveWait {
    private static let limitNanoseconds: UInt64 = 50_000
    private static let largestPause = 1_024

    /// The number of replies that are waited for by sleeping before the next attempt.
    private var left = 0
    private var pause = 1

    mutating func wait(until isReady: () -> Bool) {
        guard left == 0 else {
            left -= 1
            return
        }
        let end = Deadline.after(nanoseconds: Self.limitNanoseconds)
        repeat {
            if isReady() {
                pause = 1
                return
            }
        } while Deadline.now < end
        left = pause
        pause = min(2 * pause, Self.largestPause)
    }
}

extension MessageChannel {
    /// Receives a message that `parse` understands; throws `.closed` if the other side has closed the connection.
    fileprivate func receive<Value>(
        _ buffer: inout Buffer, until deadline: Deadline, _ parse: (Message) throws(MalformedMessage) -> Value
    ) throws(Failure) -> Value {
        guard var message = try receive(&buffer, limit: .max, until: deadline) else { throw .closed }
        defer { message.body.wipe() }
        do throws(MalformedMessage) { return try parse(message) } catch { throw .malformed }
    }
}

extension KeychainFailure {
    /// The failure of a call whose messages were not exchanged.
    init(_ failure: MessageChannel.Failure, isOutcomeUnknown: Bool) {
        if failure == .tooLarge {
            self.init(.parameter, "an item has at most 64 MiB")
            return
        }
        let reason =
            switch failure {
            case .closed: "keychaind ended, or closed the connection, before it replied"
            case .timedOut: "keychaind does not reply"
            case .malformed, .tooLarge: "keychaind speaks another version of the protocol: update this program, or keychaind"
            case .system(let error): "the connection to keychaind failed: \(error)"
            }
        if isOutcomeUnknown {
            self.init(.notAvailable, "\(reason); the change may or may not have been made", cause: .outcomeUnknown)
        } else {
            self.init(.notAvailable, reason, cause: failure == .timedOut ? .busy : nil)
        }
    }
}
