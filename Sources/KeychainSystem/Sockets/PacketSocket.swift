// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import Synchronization

/// A connection between two processes of one machine that keeps the boundaries of packets, closed when this value goes out of scope.
///
/// A packet arrives whole or not at all (SOCK_SEQPACKET), so a reader never searches for the beginning of a message. A packet with a descriptor
/// that is not expected is refused. A connection that the other side has closed never raises SIGPIPE.
package struct PacketSocket: ~Copyable, Sendable {
    /// A process as the kernel names it.
    package struct ProcessIdentity: Hashable, Sendable {
        package let processID: Int32
        package let userID: UInt32
        package let groupID: UInt32

        fileprivate init(_ identity: keychain_process_identity) {
            processID = identity.process
            userID = identity.user
            groupID = identity.group
        }
    }

    private let descriptor: FileDescriptor
    /// How long the kernel waits for a packet, in seconds; 0: until there is one.
    private let waitLimitSeconds = Atomic<Int64>(0)

    /// Connects; fails with `.timedOut` if too many other connections wait to be accepted until `deadline`.
    package init(connectingTo path: String, until deadline: Deadline) throws(Errno) {
        let number = try LocalSocket.connected(SOCK_SEQPACKET, to: .path(path), until: deadline)
        try self.init(adopting: number)
    }

    /// Takes over a connected socket, and closes it if it cannot be used.
    package init(adopting number: Int32) throws(Errno) {
        // Before anything is received: the kernel names the sender of a packet when it is sent.
        let code = keychain_packet_socket_prepare(number)
        guard code == 0 else {
            _ = Glibc.close(number)
            throw Errno(rawValue: code)
        }
        descriptor = FileDescriptor(rawValue: number)
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    // MARK: The process at the other end

    /// The process that connected, with its effective user and group at that time.
    ///
    /// A service that systemd listens for is named as systemd's process.
    package func peer() throws(Errno) -> ProcessIdentity {
        var identity = keychain_process_identity()
        // `identity` is a local variable.
        let code = unsafe keychain_socket_peer(descriptor.rawValue, &identity)
        guard code == 0 else { throw Errno(rawValue: code) }
        return ProcessIdentity(identity)
    }

    /// The supplementary groups of the process that connected; nil if the kernel does not tell (before Linux 4.13).
    package func peerSupplementaryGroups() -> [UInt32]? {
        var groups = [UInt32](repeating: 0, count: 64)
        while true {
            // The array has as many elements as the call may write.
            let count = unsafe keychain_socket_peer_groups(descriptor.rawValue, &groups, groups.count)
            if count >= 0 { return Array(groups.prefix(count)) }
            // The kernel's limit is NGROUPS_MAX, 65,536.
            guard errno == ERANGE, groups.count < 65_536 else { return nil }
            groups = [UInt32](repeating: 0, count: groups.count * 4)
        }
    }

    // MARK: Packets

    /// Sends one packet.
    ///
    /// With `passing`, the other side gets a copy of that descriptor. Throws `.timedOut` if it has not received earlier packets until
    /// `deadline`. If it throws, nothing was sent.
    package func send(_ packet: [UInt8], passing passed: FileDescriptor? = nil, until deadline: Deadline) throws(Errno) {
        while true {
            // The buffer is used within the closure only.
            let code = unsafe packet.withUnsafeBytes { bytes in
                unsafe keychain_packet_send(descriptor.rawValue, bytes.baseAddress, bytes.count, passed?.rawValue ?? -1)
            }
            if code == 0 { return }
            switch Errno(rawValue: code) {
            case .interrupted: continue
            case .wouldBlock:
                guard try !FileDescriptor.wait(for: [descriptor], readable: false, until: deadline).isEmpty else { throw .timedOut }
            case let error: throw error
            }
        }
    }

    /// Receives one packet into the beginning of `buffer`; returns its byte count and the process that sent it, nil at the end.
    ///
    /// `descriptorCount`: how many descriptors the packet must carry, which are closed. Throws `.timedOut` at the deadline, and an error for a
    /// packet that is larger than the buffer or carries another number of descriptors. The caller wipes the buffer if the packet is secret.
    package func receive(
        into buffer: inout [UInt8], descriptorCount: Int = 0, until deadline: Deadline
    ) throws(Errno) -> (byteCount: Int, sender: ProcessIdentity)? {
        while true {
            let waits = try prepareToWait(until: deadline)
            var sender = keychain_process_identity()
            // The buffer is used within the closure only, and `sender` is a local variable.
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe keychain_packet_receive(descriptor.rawValue, bytes.baseAddress, bytes.count, waits, descriptorCount, &sender)
            }
            if count > 0 { return (count, ProcessIdentity(sender)) }
            if count == 0 { return nil }
            guard Errno.current == .wouldBlock else { throw .current }
            if waits { continue }
            guard try !FileDescriptor.wait(for: [descriptor], until: deadline).isEmpty else { throw .timedOut }
        }
    }

    /// Makes the kernel refuse packets with descriptors from now on, if it can.
    package func refuseDescriptors() { keychain_packet_socket_refuse_descriptors(descriptor.rawValue) }

    /// Whether there is something to receive: a packet, the end of the connection, or an error.
    package var isReadable: Bool {
        // The buffer has no room, so nothing is taken.
        let count = recv(descriptor.rawValue, nil, 0, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count >= 0 || Errno.current != .wouldBlock
    }

    /// Returns when this or the other socket has something to receive, as for `isReadable`; whether this one and the other one do.
    ///
    /// Neither does at the deadline.
    package func wait(or other: borrowing PacketSocket, until deadline: Deadline) throws(Errno) -> (this: Bool, other: Bool) {
        let ready = try FileDescriptor.wait(for: [descriptor, other.descriptor], until: deadline)
        return (ready.contains(0), ready.contains(1))
    }

    /// Returns when the connection is at its end, while another thread may receive from it.
    package func waitForEnd() {
        var request = pollfd(fd: descriptor.rawValue, events: Self.endOfReceiving, revents: 0)
        // One local variable.
        while unsafe poll(&request, 1, -1) < 0, Errno.current == .interrupted {}
    }

    /// POLLRDHUP, which Swift does not import: the other side has ended, or this side receives no more.
    private static let endOfReceiving: Int16 = 0x2000

    /// Makes the kernel wait for whole seconds up to the deadline; returns false if there is less than one.
    ///
    /// A call that waits costs a third of trying, polling, and trying again. The limit of most calls is that of the one before.
    private func prepareToWait(until deadline: Deadline) throws(Errno) -> Bool {
        let seconds = deadline == .never ? 0 : Int64(deadline.remainingNanoseconds / 1_000_000_000)
        guard seconds > 0 || deadline == .never else { return false }
        guard waitLimitSeconds.load(ordering: .relaxed) != seconds else { return true }
        let code = keychain_socket_limit_wait(descriptor.rawValue, seconds)
        guard code == 0 else { throw Errno(rawValue: code) }
        waitLimitSeconds.store(seconds, ordering: .relaxed)
        return true
    }

    /// Accepts no further packets.
    ///
    /// Those that were sent before can still be received; then the connection is at its end for this side. Sending fails for the other side.
    package func stopReceiving() { _ = Glibc.shutdown(descriptor.rawValue, Int32(SHUT_RD)) }

    /// Ends the connection for both sides, also for a thread that waits for a packet.
    package func shutDown() { _ = Glibc.shutdown(descriptor.rawValue, Int32(SHUT_RDWR)) }
}

/// A socket that accepts connections of processes on the same machine.
package struct PacketListener: ~Copyable, Sendable {
    private let descriptor: FileDescriptor

    /// Listens at a path that does not exist, or that a listener which is gone has left; every user can connect.
    ///
    /// Throws `.exists` if another process listens there.
    package init(at path: String) throws(Errno) {
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = try OpenFile.aboveStandardStreams(try Errno.check { socket(AF_UNIX, type, 0) })
        do throws(Errno) {
            try Self.removeAbandonedSocket(at: path)
            try unsafe LocalSocket.Address.path(path).withSocketAddress { (address, byteCount) throws(Errno) in
                _ = try Errno.check { unsafe bind(number, address, byteCount) }
            }
            // The path lives until the call returns. Connecting needs the permission to write.
            _ = try Errno.check { unsafe chmod(path, 0o666) }
            _ = try Errno.check { listen(number, SOMAXCONN) }
        } catch {
            _ = Glibc.close(number)
            throw error
        }
        descriptor = FileDescriptor(rawValue: number)
    }

    /// Takes over the socket that systemd listens on: the first descriptor after the standard streams.
    ///
    /// Returns nil if systemd has passed none to this process. Source: sd_listen_fds(3).
    package init?(passedBySystemdIn environment: [String: String]) {
        guard environment["LISTEN_PID"] == "\(getpid())", environment["LISTEN_FDS"] == "1" else { return nil }
        let number: Int32 = 3
        guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0, fcntl(number, F_SETFL, O_NONBLOCK) == 0 else { return nil }
        descriptor = FileDescriptor(rawValue: number)
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Waits for a connection; nil when `other` can be read.
    ///
    /// Throws `.timedOut` at the deadline.
    package func accept(unless other: FileDescriptor, until deadline: Deadline = .never) throws(Errno) -> PacketSocket? {
        guard let number = try acceptNumber(unless: other, until: deadline) else { return nil }
        return try PacketSocket(adopting: number)
    }

    /// Waits for a connection, and returns its descriptor.
    func acceptNumber() throws(Errno) -> Int32 {
        // Nothing else is waited for.
        try acceptNumber(unless: FileDescriptor(rawValue: -1), until: .never) ?? -1
    }

    private func acceptNumber(unless other: FileDescriptor, until deadline: Deadline) throws(Errno) -> Int32? {
        while true {
            let ready = try FileDescriptor.wait(for: [descriptor, other], until: deadline)
            if ready.contains(1) { return nil }
            if ready.isEmpty { throw .timedOut }
            let number = keychain_socket_accept(descriptor.rawValue)
            if number >= 0 { return number }
            switch Errno.current {
            case .interrupted, .wouldBlock, .connectionReset: continue
            case let error where error.rawValue == ECONNABORTED: continue
            case let error: throw error
            }
        }
    }

    private static func removeAbandonedSocket(at path: String) throws(Errno) {
        guard let status = try? FileStatus(of: path), status.kind == .socket else { return }
        do throws(Errno) {
            _ = try PacketSocket(connectingTo: path, until: .after(milliseconds: 100))
        } catch {
            guard error == .connectionRefused else { throw .exists }
            // The path lives until the call returns.
            _ = unsafe unlink(path)
            return
        }
        throw .exists
    }
}
