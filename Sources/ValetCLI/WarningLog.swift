// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization

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
