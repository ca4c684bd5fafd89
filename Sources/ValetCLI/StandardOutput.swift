// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem
import Logging
import Synchronization

/// Standard output.
///
/// Incomplete output is an error.
enum StandardOutput {
    static var isTerminal: Bool { FileDescriptor.standardOutput.isTerminal }

    static func write(_ data: Data) throws(CommandFailure) {
        do throws(Errno) {
            try FileDescriptor.standardOutput.writeAll(data)
        } catch {
            throw CommandFailure(
                .unavailable, "cannot write to standard output: \(error)", advice: "The output is incomplete. Check its destination.")
        }
    }

    /// Reports an action that is complete.
    ///
    /// If the report cannot be written, the error says that the action was done nevertheless.
    static func write(_ lines: [String], afterAction action: String) throws(CommandFailure) {
        do throws(CommandFailure) {
            for line in lines { try writeLine(line) }
        } catch {
            throw CommandFailure(
                error.status, "\(action), but \(error.problem)",
                advice: "Only the message was lost. Check the destination of standard output.")
        }
    }

    static func writeLine(_ text: String) throws(CommandFailure) {
        try write(Data((text + "\n").utf8))
    }
}

/// Standard error.
///
/// A failure to write is ignored, because it cannot be reported.
enum StandardError {
    static func write(_ text: String, terminator: String = "\n") {
        try? FileDescriptor.standardError.writeAll((text + terminator).utf8)
    }
}

/// Collects the warnings that the libraries log while a command runs, and shows them at its end.
enum WarningLog {
    private static let messages = Mutex<[String]>([])
    private static let isImmediate = Mutex(false)

    /// Call once, before the first message is logged.
    static func start() {
        LoggingSystem.bootstrap { _ in Handler() }
    }

    /// Shows each warning when it comes, for a command that runs until it is stopped.
    static func showImmediately() {
        isImmediate.withLock { $0 = true }
        report()
        messages.withLock { $0 = [] }
    }

    /// Adds a warning, unless it is already there.
    static func add(_ message: String) {
        guard !isImmediate.withLock({ $0 }) else {
            StandardError.write("valet: warning: \(message)")
            return
        }
        messages.withLock { messages in
            if !messages.contains(message) { messages.append(message) }
        }
    }

    /// Writes the warnings to standard error.
    static func report() {
        for message in messages.withLock({ $0 }) {
            StandardError.write("valet: warning: \(message)")
        }
    }

    private struct Handler: LogHandler {
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .warning

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            WarningLog.add(event.message.description)
        }
    }
}
