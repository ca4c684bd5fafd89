// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// A connection to a Unix domain socket, which is closed when this value goes out of scope.
///
/// A connection that the other side has closed never raises SIGPIPE.
package struct LocalSocket: ~Copyable, Sendable {
    /// The address of a listening socket.
    package enum Address: Hashable, Sendable {
        case path(String)
        /// A name without a file.
        case abstract(String)

        /// Calls `body` with the address as the system expects it; throws if the path or name is too long.
        func withSocketAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Void) throws(Errno) {
            let name: [UInt8] =
                switch self {
                case .path(let path): Array(path.utf8) + [0]
                case .abstract(let name): [0] + Array(name.utf8)
                }
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            // At most as many bytes are copied as the array has.
            let isComplete = unsafe withUnsafeMutableBytes(of: &address.sun_path) { place in
                guard name.count <= place.count else { return false }
                unsafe place.copyBytes(from: name)
                return true
            }
            guard isComplete else { throw Errno(rawValue: ENAMETOOLONG) }
            let byteCount = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + socklen_t(name.count)
            // The structure is one kind of socket address, and outlives the call.
            let result: Result<Void, Errno> = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    Result { () throws(Errno) in try unsafe body(pointer, byteCount) }
                }
            }
            try result.get()
        }
    }

    private let descriptor: FileDescriptor

    /// Connects, and waits until `deadline` if too many other connections wait to be accepted.
    package init(_ address: Address, until deadline: Deadline) throws(Errno) {
        descriptor = FileDescriptor(rawValue: try Self.connected(SOCK_STREAM, to: address, until: deadline))
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Returns the descriptor of a connected socket, on which no call waits.
    ///
    /// Fails with `.timedOut` if too many other connections wait to be accepted until `deadline`.
    static func connected(_ type: __socket_type, to address: Address, until deadline: Deadline) throws(Errno) -> Int32 {
        let number = try OpenFile.aboveStandardStreams(
            try Errno.check { socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0) })
        do throws(Errno) {
            try connect(number, to: address, until: deadline)
        } catch {
            _ = Glibc.close(number)
            throw error == .wouldBlock ? .timedOut : error
        }
        return number
    }

    private static func connect(_ number: Int32, to address: Address, until deadline: Deadline) throws(Errno) {
        let milliseconds = deadline.remainingNanoseconds / 1_000_000 + 1
        var timeout = timeval(tv_sec: Int(milliseconds / 1_000), tv_usec: Int(milliseconds % 1_000) * 1_000)
        // `timeout` is a local variable of that size.
        _ = try Errno.check { unsafe setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size)) }
        try unsafe address.withSocketAddress { (pointer, byteCount) throws(Errno) in
            _ = try Errno.check { unsafe Glibc.connect(number, pointer, byteCount) }
        }
        _ = try Errno.check { fcntl(number, F_SETFL, O_NONBLOCK) }
    }

    /// Sends all of the bytes.
    package func send(_ bytes: [UInt8], until deadline: Deadline) throws(Errno) { try descriptor.sendAll(bytes, until: deadline) }

    /// Receives that many bytes; throws `.connectionReset` if the other side closes the connection before.
    ///
    /// The caller wipes the result if it is secret.
    package func receive(byteCount: Int, until deadline: Deadline) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        var received = 0
        while received < byteCount {
            guard try !FileDescriptor.wait(for: [descriptor], until: deadline).isEmpty else { throw .timedOut }
            // The buffer is used within the closure only.
            let result: Result<Int, Errno> = unsafe bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(Errno) in
                    try unsafe descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[received...]))
                }
            }
            switch result {
            case .success(0): throw .connectionReset
            case .success(let count): received += count
            case .failure(.wouldBlock): continue
            case .failure(let error): throw error
            }
        }
        return bytes
    }
}

extension FileDescriptor {
    /// Sends all of the bytes through a socket, which may block otherwise; throws `.timedOut` if the deadline passes before there is room for them.
    func sendAll(_ bytes: [UInt8], until deadline: Deadline) throws(Errno) {
        var sent = 0
        while sent < bytes.count {
            // The buffer is used within the closure only.
            let count = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[sent...])
                return unsafe Glibc.send(rawValue, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count >= 0 {
                sent += count
                continue
            }
            switch Errno.current {
            case .interrupted: continue
            case .wouldBlock:
                guard try !FileDescriptor.wait(for: [self], readable: false, until: deadline).isEmpty else { throw .timedOut }
            case let error: throw error
            }
        }
    }
}
