// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine

/// Where a passcode or a password comes from: the first line of a file descriptor, or a person at the terminal, without echo.
///
/// Never an argument and never the environment: other programs can read both.
enum PasscodeInput {
    /// Descriptors are waited for as long as persons are.
    private static let patienceSeconds = 5 * 60.0

    /// Reads from `descriptor` if there is one, else asks with `prompt` (such as "Passcode: "), `twice` for one that is new.
    ///
    /// What follows the first line is left for the next to read. `option` is the one that gives the descriptor, to be named
    /// where there is no terminal.
    static func read(
        prompt: String, descriptor: Int32?, twice: Bool, option: String = "--passcode-fd"
    ) throws(CommandFailure) -> Passcode {
        var bytes =
            if let descriptor {
                try readLine(of: descriptor, option: option)
            } else {
                try ask(prompt: prompt, twice: twice, option: option)
            }
        defer { bytes.wipe() }
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            return try unsafe bytes.span.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    private static func ask(prompt: String, twice: Bool, option: String) throws(CommandFailure) -> [UInt8] {
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure(
                .usage, "there is no terminal to ask on, and nothing was changed",
                advice: "Give it in the first line of a file descriptor, such as \(option) 3 3<file."
            )
        }
        let terminal = Terminal()
        var entered = try terminal.readWithoutEcho(prompt: prompt)
        guard twice else { return entered }
        var again: [UInt8] = []
        defer { again.wipe() }
        do throws(CommandFailure) {
            again = try terminal.readWithoutEcho(prompt: "Again: ".padding(toLength: prompt.count, withPad: " ", startingAt: 0))
            guard entered == again else {
                throw CommandFailure(.usage, "the two entries differ, and nothing was changed", advice: "Run the command again.")
            }
            return entered
        } catch {
            entered.wipe()
            throw error
        }
    }

    /// The first line without its end, read byte by byte: what follows is somebody else's.
    private static func readLine(of descriptor: Int32, option: String) throws(CommandFailure) -> [UInt8] {
        guard fcntl(descriptor, F_GETFD) >= 0 else { throw unreadable(descriptor, errno, option: option) }
        guard isatty(descriptor) == 0 else {
            throw CommandFailure(
                .usage, "descriptor \(descriptor) is a terminal, which would show what is typed",
                advice: "Leave out \(option) to be asked without echo, or name a file or a pipe."
            )
        }
        var line: [UInt8] = []
        // Never moved while it grows, so that no copy is left behind; one byte more than is allowed, for a line break or to be refused.
        line.reserveCapacity(Passcode.largestByteCount + 2)
        let deadline = Date(timeIntervalSinceNow: patienceSeconds)
        do throws(CommandFailure) {
            while line.count <= Passcode.largestByteCount + 1, let byte = try readByte(of: descriptor, until: deadline, option: option) {
                if byte == UInt8(ascii: "\n") { break }
                line.append(byte)
            }
        } catch {
            line.wipe()
            throw error
        }
        // A carriage return cannot be typed: it belongs to the line break.
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return line
    }

    /// Nil at the end.
    private static func readByte(of descriptor: Int32, until deadline: Date, option: String) throws(CommandFailure) -> UInt8? {
        while true {
            // The pointers are used during the calls only.
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let rest = deadline.timeIntervalSinceNow
            let ready = rest > 0 ? unsafe poll(&request, 1, Int32(rest * 1000)) : 0
            guard ready != 0 else {
                throw CommandFailure(
                    .unavailable, "nothing came from descriptor \(descriptor), and nothing was changed", advice: "Check what writes to it.")
            }
            var byte: UInt8 = 0
            let count = ready > 0 ? unsafe Foundation.read(descriptor, &byte, 1) : -1
            if count > 0 { return byte }
            if count == 0 { return nil }
            if errno == EINTR || errno == EAGAIN { continue }
            throw unreadable(descriptor, errno, option: option)
        }
    }

    private static func unreadable(_ descriptor: Int32, _ errorNumber: Int32, option: String) -> CommandFailure {
        CommandFailure(
            .usage, "descriptor \(descriptor) cannot be read: \(FileDescriptor.message(errorNumber))",
            advice: "Open it for the command, such as \(option) 3 3<file."
        )
    }
}
