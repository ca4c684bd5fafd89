// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// A child process with pipes as its standard input and output.
///
/// Releasing the object ends and reaps the child.
@safe package final class PipedProcess {
    /// The result of waiting for the child.
    package enum Wait: Equatable, Sendable {
        /// The child has written something or has ended.
        case ready
        /// A descriptor for interruptions became readable.
        case interrupted
        case timedOut
    }

    private var child = keychain_child(process: -1, end: -1, input: -1, output: -1, leads_session: false, exit_code: -1)
    private var isReaped = true
    private let interruptions: [FileDescriptor]

    /// How long the child may take to end by itself, after SIGTERM and after SIGKILL.
    private static let terminationTimeoutsMilliseconds: [UInt64] = [300, 500, 2_000]

    /// Starts a program; `interruptions` are descriptors of which one becomes readable when the wait for it is to end.
    ///
    /// `arguments` begins after the name of the program.
    package init(
        path: String, arguments: [String] = [], environment: [String: String], leadsSession: Bool,
        interruptions: [FileDescriptor] = []
    ) throws(Errno) {
        self.interruptions = interruptions
        // Copies that live until the end of the call, ended by the null pointer that posix_spawn expects.
        let arguments = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        let variables = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe variables.indices { unsafe free(variables[index]) }
        }
        let code = unsafe keychain_child_start(path, arguments, variables, leadsSession, &child)
        guard code == 0 else { throw Errno(rawValue: code) }
        isReaped = false
    }

    deinit {
        terminate()
        // Here and below: only this object uses the structure.
        unsafe keychain_child_close(&child)
    }

    /// The child's standard output, to be read without blocking.
    package var output: FileDescriptor { FileDescriptor(rawValue: child.output) }

    package var hasEnded: Bool { waitForEnd(milliseconds: 0) }

    /// The exit code of a child that has ended; nil if a signal ended it, or if other code of this process has reaped it.
    package var exitCode: Int32? { child.exit_code < 0 ? nil : child.exit_code }

    /// Whether this object ended the child with a signal.
    ///
    /// Such a child may have left its terminal in another mode.
    package private(set) var wasKilled = false

    /// Writes one line; the pipe must have room for it.
    package func send(_ line: [UInt8]) throws(Errno) {
        // As many bytes as the line has.
        let count = unsafe keychain_pipe_write(child.input, line, line.count)
        guard count >= 0 else { throw Errno(rawValue: Int32(-count)) }
        guard count == line.count else { throw .wouldBlock }
    }

    /// Reads all output, and waits for the end of the child; nil if the output is larger than `byteLimit`.
    ///
    /// Throws `.timedOut` at the deadline. The caller wipes the result if it is secret.
    package func readToEnd(byteLimit: Int, until deadline: Deadline) throws(Errno) -> [UInt8]? {
        unsafe keychain_child_close_input(&child)
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        defer { chunk.wipe() }
        while true {
            guard try !FileDescriptor.wait(for: [output], until: deadline).isEmpty else { throw .timedOut }
            // The buffer is used within the closure only.
            let result: Result<Int, Errno> = unsafe chunk.withUnsafeMutableBytes { bytes in
                Result { () throws(Errno) in try unsafe output.read(into: bytes) }
            }
            let count = try result.get()
            if count == 0 { break }
            guard contents.count + count <= byteLimit else {
                contents.wipe()
                return nil
            }
            contents.append(contentsOf: chunk[..<count])
        }
        guard waitForEnd(milliseconds: deadline.remainingNanoseconds / 1_000_000) else { throw .timedOut }
        return contents
    }

    /// Waits for output or for the end of the child.
    package func wait(until deadline: Deadline) throws(Errno) -> Wait {
        // A negative descriptor is never ready: kernels before 5.3 have none for the end of a process.
        let descriptors = [output, FileDescriptor(rawValue: child.end)] + interruptions
        let ready = try FileDescriptor.wait(for: descriptors, until: deadline)
        if ready.contains(where: { $0 > 1 }) { return .interrupted }
        return ready.isEmpty ? .timedOut : .ready
    }

    /// Ends the child: closes its input, then sends SIGTERM, then SIGKILL.
    package func terminate() {
        unsafe keychain_child_close_input(&child)
        for (milliseconds, signal) in zip(Self.terminationTimeoutsMilliseconds, [SIGTERM, SIGKILL, 0]) {
            guard !waitForEnd(milliseconds: milliseconds), signal != 0 else { return }
            wasKilled = true
            unsafe keychain_child_signal(&child, signal)
        }
    }

    /// Ends a child that is known not to react to the end of its input.
    package func kill() {
        guard !hasEnded else { return }
        wasKilled = true
        unsafe keychain_child_signal(&child, SIGTERM)
        terminate()
    }

    private func waitForEnd(milliseconds: UInt64) -> Bool {
        let deadline = Deadline.after(milliseconds: milliseconds)
        while !isReaped {
            isReaped = unsafe keychain_child_has_ended(&child)
            guard !isReaped, !deadline.isOver else { break }
            if child.end >= 0 {
                _ = try? FileDescriptor.wait(for: [FileDescriptor(rawValue: child.end)], until: deadline)
            } else {
                MonotonicClock.sleep(nanoseconds: min(5_000_000, deadline.remainingNanoseconds))
            }
        }
        return isReaped
    }
}
