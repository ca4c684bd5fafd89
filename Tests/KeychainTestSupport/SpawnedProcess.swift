// SPDX-License-Identifier: Apache-2.0
internal import CKeychainTestShims
package import Glibc

/// A process that a test has started.
package struct SpawnedProcess: Sendable {
    package struct Failure: Error {
        let call: String
        let errorNumber: Int32
    }

    /// The termination status of a process.
    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case killed(bySignal: Int32)
    }

    /// The file behind a standard stream.
    package enum Redirection {
        case open(String, Int32)
        case duplicate(Int32)
    }

    /// `POSIX_SPAWN_SETSID`, which the C library declares for GNU programs only.
    private static let newSession: Int32 = 0x80

    package let identifier: pid_t

    /// Starts a program, with its descriptors 0, 1, and 2 redirected in this order.
    ///
    /// The child's environment is exactly `environment`. Signals are neither blocked nor ignored, whatever the test runner does.
    /// Without `inheritsOtherDescriptors` it gets no descriptor that another test has opened meanwhile without close-on-exec.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String], standardStreams: [Redirection],
        inNewSession: Bool = false, inheritsOtherDescriptors: Bool = true
    ) throws(Failure) {
        // The pointers are used during the calls only.
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        for (descriptor, redirection) in zip(Int32(0)..., standardStreams) {
            switch redirection {
            case .open(let path, let flags): unsafe posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0)
            case .duplicate(let other): unsafe posix_spawn_file_actions_adddup2(&actions, other, descriptor)
            }
        }
        if !inheritsOtherDescriptors { _ = unsafe keychain_test_spawn_close_from(&actions, Int32(standardStreams.count)) }
        unsafe posix_spawnattr_setflags(
            &attributes, Int16((inNewSession ? Self.newSession : 0) | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        // Copies that live until the end of the call; a null pointer ends each array.
        let argumentCopies = unsafe ([executable] + arguments).map { unsafe strdup($0) }
        let environmentCopies = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") }
        defer { _ = unsafe (argumentCopies + environmentCopies).map { unsafe free($0) } }
        var process: pid_t = 0
        let code = unsafe posix_spawnp(&process, executable, &actions, &attributes, argumentCopies + [nil], environmentCopies + [nil])
        guard code == 0 else { throw Failure(call: "posix_spawn \(executable)", errorNumber: code) }
        identifier = process
    }

    /// Waits for the process; returns nil if `options` is `WNOHANG` and it has not ended.
    package func reap(options: Int32 = 0) -> Ending? {
        var status: Int32 = 0
        var reaped: pid_t
        repeat { reaped = unsafe waitpid(identifier, &status, options) } while reaped < 0 && errno == EINTR
        guard reaped == identifier else { return nil }
        // As wait(2) defines: a signal in the low seven bits, an exit code in the next byte.
        return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .killed(bySignal: status & 0x7f)
    }
}

/// A connection between a test and a process.
///
/// Foundation's `Pipe` leaks into children that other tests start at the same time, which delays the end of a child's output.
/// Here both ends are created close-on-exec. They are sockets, because Swift does not import pipe2.
package struct ChildConnection {
    package let ownEnd: Int32
    package let childEnd: Int32

    package init() throws(SpawnedProcess.Failure) {
        var ends: [Int32] = [-1, -1]
        // The array has the two elements that socketpair fills.
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw SpawnedProcess.Failure(call: "socketpair", errorNumber: errno)
        }
        (ownEnd, childEnd) = (ends[0], ends[1])
    }
}

/// Reads from descriptors, with a deadline.
package enum DescriptorReader {
    /// Waits until at least one of the descriptors is readable or at its end, and returns those; returns none at the deadline.
    package static func readable(_ descriptors: [Int32], until deadline: ContinuousClock.Instant) -> [Int32] {
        var requests = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while true {
            let left = (deadline - ContinuousClock.now) / .milliseconds(1)
            guard left > 0 else { return [] }
            // The requests are ours.
            if unsafe poll(&requests, nfds_t(requests.count), Int32(min(left.rounded(.up), 60_000))) > 0 {
                return requests.filter { $0.revents != 0 }.map(\.fd)
            }
        }
    }

    /// Returns the next bytes, or nil at the end.
    ///
    /// A pseudo-terminal that no process has open returns an error, which is its end.
    package static func read(_ descriptor: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        // The pointer is used during the call only.
        let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
        return count > 0 ? Array(buffer.prefix(count)) : nil
    }
}
