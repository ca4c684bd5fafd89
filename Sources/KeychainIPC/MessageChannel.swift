// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// A connection that carries messages.
///
/// Any thread may send, one at a time; one thread receives.
package final class MessageChannel: Sendable {
    /// Why a message was not sent or received.
    package enum Failure: Error, Equatable, Sendable {
        /// The other side has closed the connection.
        case closed
        case timedOut
        /// A packet is not what the protocol allows.
        case malformed
        /// A request is larger than the limit, and was not sent.
        case tooLarge
        case system(Errno)

        init(_ error: Errno) {
            self =
                switch error {
                case .timedOut: .timedOut
                case .connectionReset, .brokenPipe: .closed
                case .badMessage, .messageTooLong: .malformed
                default: .system(error)
                }
        }
    }

    /// The memory for packets of one receiver, which keeps nothing of a message.
    package struct Buffer: ~Copyable, Sendable {
        fileprivate var bytes = [UInt8](repeating: 0, count: WireProtocol.largestPacketByteCount)

        package init() {}
    }

    package let socket: PacketSocket

    package init(_ socket: consuming PacketSocket) {
        self.socket = socket
    }

    /// Sends a message, which is wiped.
    ///
    /// With `passing`, each packet carries a copy of that descriptor. If it throws, the other side has not received the whole message, and does
    /// nothing with a part of it.
    package func send(_ message: consuming Message, passing descriptor: FileDescriptor? = nil, until deadline: Deadline) throws(Failure) {
        try (consume message).forEachPacket { packet throws(Failure) in
            do throws(Errno) { try socket.send(packet, passing: descriptor, until: deadline) } catch { throw Failure(error) }
        }
    }

    /// Receives a message; nil if the other side has closed the connection between two messages.
    ///
    /// `limit`: the largest body in bytes. The first packet may be waited for until `deadline`, and the rest of its message for 30 seconds, so that a
    /// sender that stops within a message does not keep the memory of a part. All that share `largeMessages` receive one message of several
    /// packets at a time. `isSenderAllowed` is asked about each packet, which must carry `descriptorCount` descriptors.
    package func receive(
        _ buffer: inout Buffer, limit: Int, descriptorCount: Int = 0, until deadline: Deadline, largeMessages: TimedLock? = nil,
        isSenderAllowed: (PacketSocket.ProcessIdentity) -> Bool = { _ in true }
    ) throws(Failure) -> Message? {
        var assembly = MessageAssembly(limit: limit)
        var isComplete = false
        var isLockHeld = false
        var deadline = deadline
        defer {
            if !isComplete { assembly.wipe() }
            if isLockHeld { largeMessages?.release() }
        }
        while true {
            let received: (byteCount: Int, sender: PacketSocket.ProcessIdentity)?
            do throws(Errno) {
                received = try socket.receive(into: &buffer.bytes, descriptorCount: descriptorCount, until: deadline)
            } catch {
                throw Failure(error)
            }
            guard let received else {
                if assembly.isIncomplete { throw .closed }
                return nil
            }
            defer { Self.wipe(&buffer.bytes, received.byteCount) }
            let isFirst = !assembly.isIncomplete
            guard isSenderAllowed(received.sender) else { throw .malformed }
            do throws(MalformedMessage) {
                if let message = try assembly.add(buffer.bytes[..<received.byteCount]) {
                    isComplete = true
                    return message
                }
            } catch {
                throw .malformed
            }
            if isFirst { deadline = .after(seconds: Self.messageTimeoutSeconds) }
            if let largeMessages, !isLockHeld {
                guard largeMessages.acquire(until: .after(seconds: Self.largeMessageTimeoutSeconds)) else { throw .timedOut }
                isLockHeld = true
            }
        }
    }

    /// Less than a program waits for its reply.
    private static let largeMessageTimeoutSeconds: UInt32 = 20
    private static let messageTimeoutSeconds: UInt32 = 30

    private static func wipe(_ bytes: inout [UInt8], _ count: Int) {
        // The part of the buffer that was used, within the closure.
        unsafe bytes.withUnsafeMutableBytes { unsafe wipeMemory(UnsafeMutableRawBufferPointer(rebasing: $0[..<count])) }
    }
}
