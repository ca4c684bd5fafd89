// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The protocol between a program and keychaind.
///
/// A message is one packet, or several if it is large. All numbers are little-endian.
///
///     packet = version (1) ‖ kind (1) ‖ operation (2) ‖ byte count (4) ‖ part of the body
///
/// The byte count of the first packet is that of the whole body, those of the following ones, of the kind `part`, the number of bytes that
/// are still missing before them. No packet carries descriptors but that with which a program identifies itself, so there is no shared memory that
/// a sender could change or shrink after the check. Anything else ends the connection.
///
///     keychaind                                program
///     hello: lowest and highest version, nonce →
///                                            ← identify: nonce, declared entitlements
///     reply: assurance level, access groups  →
///                                            ← request
///     reply                                  →
///
/// The identification carries one descriptor, of which keychaind makes no use: a program that copies bytes from its input to its output, and was
/// executed on the connection of another program, sends none.
///
/// A connection has at most one request at a time. A program that calls from several threads uses several connections. After a request to
/// observe changes the connection carries events only.
package enum WireProtocol {
    /// The version that this code speaks.
    package static let version: UInt8 = 1
    /// Random bytes that prove that the program has read the greeting of this connection.
    package static let nonceByteCount = Identifier128.byteCount
    package static let headerByteCount = 8
    /// The largest packet: well below the send buffer of a Unix socket, 208 KiB.
    package static let largestPacketByteCount = 65_536
    /// The most access groups that a program can declare.
    package static let largestGroupCount = 256
    /// The largest reply; a search whose result is larger fails.
    package static let largestReplyByteCount = 1 << 30
    /// An item has at most 64 MiB; its attributes and the rest of the request fit in one more.
    package static let largestRequestByteCount = 65 << 20
}

/// What a packet is.
package enum PacketKind: UInt8, Sendable {
    case hello = 1
    case identify = 2
    case request = 3
    case reply = 4
    case event = 5
    /// A further part of the body of the message before.
    case part = 6
}

/// A message that is not what the protocol allows here.
///
/// The connection is of no use any more.
package struct MalformedMessage: Error, Equatable, Sendable {
    package init() {}
}

/// The beginning of a packet.
package struct PacketHeader: Equatable, Sendable {
    package let kind: PacketKind
    /// The number of a request's operation; 0 for other kinds.
    package let operation: UInt16
    package let byteCount: UInt32

    package init(_ kind: PacketKind, operation: UInt16 = 0, byteCount: UInt32) {
        self.kind = kind
        self.operation = operation
        self.byteCount = byteCount
    }

    package init(parsing packet: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ByteReader(packet)
        guard reader.readByte() == WireProtocol.version, let kind = reader.readByte().flatMap(PacketKind.init),
            let operation = reader.readUInt16(),
            let byteCount = reader.readUInt32()
        else { throw MalformedMessage() }
        self.init(kind, operation: operation, byteCount: byteCount)
    }

    fileprivate func append(to packet: inout [UInt8]) {
        packet.append(WireProtocol.version)
        packet.append(kind.rawValue)
        packet.append(littleEndian: operation)
        packet.append(littleEndian: byteCount)
    }
}

/// A whole message.
package struct Message: Equatable, Sendable {
    package let kind: PacketKind
    package let operation: UInt16
    package var body: [UInt8]

    package init(_ kind: PacketKind, operation: UInt16 = 0, body: [UInt8] = []) {
        self.kind = kind
        self.operation = operation
        self.body = body
    }

    /// Calls `send` with each packet of the message, and wipes the packets and the body.
    package consuming func forEachPacket<Failure: Error>(_ send: ([UInt8]) throws(Failure) -> Void) throws(Failure) {
        defer { body.wipe() }
        var sent = 0
        repeat {
            let isFirst = sent == 0
            let count = min(body.count - sent, WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount)
            var packet: [UInt8] = []
            defer { packet.wipe() }
            packet.reserveCapacity(WireProtocol.headerByteCount + count)
            PacketHeader(isFirst ? kind : .part, operation: isFirst ? operation : 0, byteCount: UInt32(clamping: body.count - sent))
                .append(to: &packet)
            packet.append(contentsOf: body[sent..<(sent + count)])
            try send(packet)
            sent += count
        } while sent < body.count
    }
}

/// Joins the packets of a message.
package struct MessageAssembly: Sendable {
    private let limit: Int
    private var header: PacketHeader?
    private var body: [UInt8] = []

    /// `limit`: the largest body that is accepted.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Whether a message has begun and is not complete.
    package var isIncomplete: Bool { header != nil }

    /// Adds a packet; returns the message if it is complete.
    package mutating func add(_ packet: ArraySlice<UInt8>) throws(MalformedMessage) -> Message? {
        let next = try PacketHeader(parsing: packet)
        let part = packet.dropFirst(WireProtocol.headerByteCount)
        if let header {
            guard next.kind == .part, next.operation == 0, Int(next.byteCount) == Int(header.byteCount) - body.count else {
                throw MalformedMessage()
            }
        } else {
            guard next.kind != .part, Int(next.byteCount) <= limit else { throw MalformedMessage() }
            header = next
            // All at once, so that growing leaves no copies of secrets behind. The system provides the memory only as it is filled.
            body.reserveCapacity(Int(next.byteCount))
        }
        // A message has as few packets as possible, so that a sender cannot make many of it.
        let expected = min(Int(next.byteCount), WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount)
        guard let header, part.count == expected else { throw MalformedMessage() }
        body += part
        guard body.count == Int(header.byteCount) else { return nil }
        defer {
            self.header = nil
            body = []
        }
        return Message(header.kind, operation: header.operation, body: body)
    }

    /// Wipes what was received of an incomplete message.
    package mutating func wipe() { body.wipe() }
}
