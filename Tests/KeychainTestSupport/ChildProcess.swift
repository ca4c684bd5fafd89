// SPDX-License-Identifier: Apache-2.0
import Foundation
package import Glibc

/// A child process with which a test exchanges lines.
///
/// Every call that waits has a deadline.
package final class ChildProcess {
    package enum Failure: Error {
        case gaveNoLine(output: String)
        case didNotEnd
    }

    package typealias Ending = SpawnedProcess.Ending

    package var processID: pid_t { process.identifier }
    private let process: SpawnedProcess
    private let connection: Int32
    private var pending: [UInt8] = []
    /// The lines that `readLine` has returned.
    package private(set) var linesRead: [String] = []
    private var ending: Ending?

    /// Starts a program.
    ///
    /// The child's environment is exactly `environment`. Its standard error goes to the same stream as its standard output.
    package init(_ executable: String, _ arguments: [String] = [], environment: [String: String] = [:]) throws {
        let connection = try ChildConnection()
        defer { close(connection.childEnd) }
        do {
            process = try SpawnedProcess(
                executable, arguments, environment: environment,
                standardStreams: Array(repeating: .duplicate(connection.childEnd), count: 3))
        } catch {
            close(connection.ownEnd)
            throw error
        }
        self.connection = connection.ownEnd
    }

    deinit {
        if ending == nil {
            kill(processID, SIGKILL)
            _ = process.reap()
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
        waitUntil(withinSeconds: seconds) {
            if ending == nil { ending = process.reap(options: WNOHANG) }
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
        guard !DescriptorReader.readable([connection], until: deadline).isEmpty else { return nil }
        guard let bytes = DescriptorReader.read(connection) else { return false }
        pending += bytes
        return true
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
