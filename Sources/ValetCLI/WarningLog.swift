// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization

/// Keeps the warnings that the libraries log while a command runs, to be shown at its end.
///
/// What made the command fail is logged too; it is told once, as the failure.
enum WarningLog {
    private static let messages = Mutex<[String]>([])

    /// Called once, before anything is logged.
    static func start() {
        LoggingSystem.bootstrap { _ in Handler() }
    }

    /// Writes the warnings to standard error, except those that say what `failure` says.
    static func report(except failure: CommandFailure? = nil) {
        for message in messages.withLock({ $0 }) {
            if let failure, message.hasPrefix(failure.problem) { continue }
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
            let text = event.message.description
            messages.withLock { messages in
                if !messages.contains(text) { messages.append(text) }
            }
        }
    }
}
