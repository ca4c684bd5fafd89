// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// A connection on which one process asks another one about a third: a packet with the handle of a process, and one packet for each further question and
/// answer.
package final class InspectionSocket: Sendable {
    private let descriptor: FileDescriptor

    /// Connects; fails with `.timedOut` if too many other connections wait to be accepted until `deadline`.
    package init(connectingTo path: String, until deadline: Deadline) throws(Errno) {
        descriptor = FileDescriptor(rawValue: try LocalSocket.connected(SOCK_SEQPACKET, to: .path(path), until: deadline))
    }

    /// Takes over a connected socket.
    init(adopting number: Int32) {
        descriptor = FileDescriptor(rawValue: number)
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Sends a handle, without waiting.
    package func send(_ handle: ProcessHandle) throws(Errno) {
        // The array has one byte.
        let code = unsafe keychain_packet_send(descriptor.rawValue, [1 as UInt8], 1, handle.descriptor.rawValue)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    package func receiveHandle(until deadline: Deadline) throws(Errno) -> ProcessHandle {
        try waitForPacket(until: deadline)
        return ProcessHandle(adopting: try Errno.check { keychain_descriptor_receive(descriptor.rawValue) })
    }

    /// Sends a packet, without waiting.
    package func send(_ packet: [UInt8]) throws(Errno) {
        // The array outlives the call.
        guard unsafe Glibc.send(descriptor.rawValue, packet, packet.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) == packet.count else {
            throw .current
        }
    }

    /// Receives a packet of that many bytes; throws `.badMessage` for every other one, and at the end of the connection.
    package func receive(byteCount: Int, until deadline: Deadline) throws(Errno) -> [UInt8] {
        try waitForPacket(until: deadline)
        var packet = [UInt8](repeating: 0, count: byteCount)
        // As many bytes as the array has. The result is the size of the packet, also if that is larger.
        let count = unsafe recv(descriptor.rawValue, &packet, byteCount, Int32(MSG_DONTWAIT | MSG_TRUNC))
        guard count >= 0 else { throw .current }
        guard count == byteCount else { throw .badMessage }
        return packet
    }

    private func waitForPacket(until deadline: Deadline) throws(Errno) {
        guard try !FileDescriptor.wait(for: [descriptor], until: deadline).isEmpty else { throw .timedOut }
    }
}

extension PacketListener {
    /// Waits for a connection of a process that asks about another one.
    package func acceptInspection() throws(Errno) -> InspectionSocket { InspectionSocket(adopting: try acceptNumber()) }
}
