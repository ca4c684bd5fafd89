// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Standard output, written whole or not at all as far as the caller is told.
enum StandardOutput {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    static func write(_ data: Data) throws(CommandFailure) {
        guard let errorNumber = FileDescriptor.write(data, to: STDOUT_FILENO) else { return }
        throw CommandFailure(
            .unavailable, "standard output cannot be written: \(FileDescriptor.message(errorNumber))",
            advice: "Not everything was written out; check where the output goes."
        )
    }

    /// Tells what was done: a failure to tell it must not look as if it were not.
    static func write(_ lines: [String], afterDone done: String) throws(CommandFailure) {
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
        _ = FileDescriptor.write(Data((text + "\n").utf8), to: STDERR_FILENO)
    }
}
