// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem
import Logging
import Synchronization

/// Standard output, written whole or not at all as far as the caller is told.
enum StandardOutput {
    static var isTerminal: Bool { FileDescriptor.standardOutput.isTerminal }

    static func write(_ data: Data) throws(CommandFailure) {
        do throws(Errno) {
            try FileDescriptor.standardOutput.writeAll(data)
        } catch {
            throw CommandFailure(
                .unavailable, "standard output cannot be written: \(error)",
                advice: "Not everything was written out; check where the output goes."
            )
        }
    }

    /// Tells what was done: a failure to tell it must not look as if it were not.
    static func write(_ lines: [String], afterAction done: String) throws(CommandFailure) {
        do throws(CommandFailure) {
            for line in lines { try writeLine(line) }
        } catch {
            throw CommandFailure(
                error.status, "\(done), but \(error.problem)", advice: "Only the message is lost; check where the output goes.")
        }
    }

    static func writeLine(_ text: String) throws(CommandFailure) {
        try write(Data((text + "\n").utf8))
    }
}

/// Standard error.
///
/// If it cannot be written there is nobody left to tell.
enum StandardError {
    static func write(_ text: String) {
        try? FileDescriptor.standardError.writeAll((text + "\n").utf8)
    }
}

/// Keeps the warnings that the libraries log while a command runs, to be shown at its end.
enum WarningLog {
    private static let messages = Mutex<[String]>([])
    private static let silenced = Mutex<Set<String>>([])

    /// Called once, before anything is logged.
    static func start() {
        LoggingSystem.bootstrap { _ in Handler() }
    }

    /// Leaves out a message that the command itself acts upon: a failure is logged by the libraries, and told by the command.
    static func silence(_ message: String) {
        _ = silenced.withLock { $0.insert(message) }
    }

    /// Adds a warning of the command's own.
    static func add(_ message: String) {
        messages.withLock { messages in
            if !messages.contains(message) { messages.append(message) }
        }
    }

    /// Writes the warnings to standard error.
    static func report() {
        let silenced = silenced.withLock { $0 }
        for message in messages.withLock({ $0 }) where !silenced.contains(message) {
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
