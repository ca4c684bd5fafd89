// SPDX-License-Identifier: Apache-2.0
import Foundation
package import Glibc

/// A child process with which a test exchanges lines.
///
/// Every call that waits has a deadline.
///
/// Foundation's `Process` leaks its pipes into children that other tests start at the same time, which delays the end of a child's output.
/// Here both ends are created close-on-exec.
package final class ChildProcess {
    package enum Failure: Error {
        case couldNotStart(String, errorNumber: Int32)
        case gaveNoLine(output: String)
        case didNotEnd
    }

    /// The termination status of a process.
    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case killed(bySignal: Int32)
    }

    package let processID: pid_t
    private let connection: Int32
    private var pending: [UInt8] = []
    /// The lines that `readLine` has returned.
    package private(set) var linesRead: [String] = []
    private var ending: Ending?

    /// Starts a program.
    ///
    /// The child's environment is exactly `environment`. Its standard error goes to the same stream as its standard output.
    package init(_ executable: String, _ arguments: [String] = [], environment: [String: String] = [:]) throws {
        var ends: [Int32] = [-1, -1]
        // The array has the two elements that socketpair fills. A socket, because Swift does not import pipe2.
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Failure.couldNotStart(executable, errorNumber: errno)
        }
        let spawned = Self.spawn(executable, arguments, environment, standardStreams: ends[1])
        close(ends[1])
        guard let processID = spawned.processID else {
            close(ends[0])
            throw Failure.couldNotStart(executable, errorNumber: spawned.errorNumber)
        }
        self.processID = processID
        connection = ends[0]
    }

    deinit {
        if ending == nil {
            kill(processID, SIGKILL)
            _ = reap(options: 0)
        }
        close(connection)
    }

    /// Writes one line to the child's standard input.
    package func send(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // A line is short enough to be sent whole. If the child has ended, the next read reports it.
        _ = unsafe Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Ends the child's standard input.
    package func closeInput() {
        shutdown(connection, Int32(SHUT_WR))
    }

    /// Reads the next line of the child's output; nil at its end.
    package func readLine(withinSeconds seconds: Double = 60) throws -> String? {
        let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
        while true {
            if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: pending[..<end], as: UTF8.self)
                pending.removeFirst(end + 1)
                linesRead.append(line)
                return line
            }
            switch readMore(until: deadline) {
            case .some(true): continue
            case .some(false):
                defer { pending = [] }
                return pending.isEmpty ? nil : String(decoding: pending, as: UTF8.self)
            case .none: throw Failure.gaveNoLine(output: String(decoding: pending, as: UTF8.self))
            }
        }
    }

    /// Reads the rest of the child's output.
    package func readToEnd(withinSeconds seconds: Double = 60) throws -> String {
        let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
        while let hasMore = readMore(until: deadline) {
            guard !hasMore else { continue }
            defer { pending = [] }
            return String(decoding: pending, as: UTF8.self)
        }
        throw Failure.gaveNoLine(output: String(decoding: pending, as: UTF8.self))
    }

    package func send(signal: Int32) {
        kill(processID, signal)
    }

    /// Waits until the process has ended.
    package func waitUntilEnded(withinSeconds seconds: Double = 60) throws -> Ending {
        if let ending { return ending }
        var ending: Ending?
        waitUntil(withinSeconds: seconds) {
            ending = reap(options: WNOHANG)
            return ending != nil
        }
        guard let ending else { throw Failure.didNotEnd }
        return ending
    }

    /// Runs a program to its end, and returns its output.
    package static func run(
        _ executable: String, _ arguments: [String] = [], environment: [String: String] = [:], withinSeconds seconds: Double = 60
    ) throws -> (ending: Ending, output: String) {
        let child = try ChildProcess(executable, arguments, environment: environment)
        child.closeInput()
        let output = try child.readToEnd(withinSeconds: seconds)
        return (try child.waitUntilEnded(), output)
    }

    /// Returns true if bytes were read, false at the end of the output, nil at the deadline.
    private func readMore(until deadline: ContinuousClock.Instant) -> Bool? {
        var request = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
        while true {
            let left = (deadline - ContinuousClock.now) / .milliseconds(1)
            guard left > 0 else { return nil }
            // One request, which is ours.
            if unsafe poll(&request, 1, Int32(left.rounded(.up))) > 0 { break }
        }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(connection, &buffer, buffer.count)
        guard count > 0 else { return false }
        pending.append(contentsOf: buffer.prefix(count))
        return true
    }

    private func reap(options: Int32) -> Ending? {
        var status: Int32 = 0
        guard unsafe waitpid(processID, &status, options) == processID else { return nil }
        // As wait(2) defines: a signal in the low seven bits, an exit code in the next byte.
        let ending: Ending = status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .killed(bySignal: status & 0x7f)
        self.ending = ending
        return ending
    }

    private static func spawn(
        _ executable: String, _ arguments: [String], _ environment: [String: String], standardStreams: Int32
    ) -> (processID: pid_t?, errorNumber: Int32) {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for standardStream: Int32 in 0...2 { unsafe posix_spawn_file_actions_adddup2(&actions, standardStreams, standardStream) }
        // Copies that live until the end of the call; a null pointer ends each array.
        let argumentCopies = unsafe ([executable] + arguments).map { unsafe strdup($0) }
        let environmentCopies = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") }
        defer { _ = unsafe (argumentCopies + environmentCopies).map { unsafe free($0) } }
        var processID: pid_t = 0
        let code = unsafe posix_spawnp(&processID, executable, &actions, nil, argumentCopies + [nil], environmentCopies + [nil])
        return code == 0 ? (processID, 0) : (nil, code)
    }
}

/// Finds programs that this package has built, in the directory of the tests.
package enum BuiltProgram {
    package struct Missing: Error {
        let name: String
        let places: [String]
    }

    /// Returns the path of the program.
    ///
    /// Throws `Missing` with the searched directories if it was not built.
    package static func path(of name: String) throws -> String {
        let places = [try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"), CommandLine.arguments.first]
            .compactMap(\.self)
            .map { URL(filePath: $0).deletingLastPathComponent().path }
        guard let place = places.first(where: { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }) else {
            throw Missing(name: name, places: places)
        }
        return "\(place)/\(name)"
    }
}
