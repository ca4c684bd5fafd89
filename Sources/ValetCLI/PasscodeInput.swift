// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

/// Where a passcode or a password comes from: the first line of a file descriptor, or a person at the terminal, without echo.
///
/// Never an argument and never the environment: other programs can read both.
struct PasscodeInput {
    /// What it is called in questions and messages.
    let name: String
    /// The option that gives the descriptor, to be named where there is no terminal.
    let option: String
    /// One that is new is asked for twice.
    let isNew: Bool

    static let passcode = PasscodeInput(name: "passcode", option: "--passcode-fd", isNew: false)
    static let firstPasscode = PasscodeInput(name: "new passcode", option: "--passcode-fd", isNew: true)
    static let newPasscode = PasscodeInput(name: "new passcode", option: "--new-passcode-fd", isNew: true)
    static let recoveryKey = PasscodeInput(name: "recovery key", option: "--recovery-key-fd", isNew: false)
    static let password = PasscodeInput(name: "password of the backup", option: "--password-fd", isNew: false)
    static let newPassword = PasscodeInput(name: "password of the backup", option: "--password-fd", isNew: true)

    /// What the first line of `descriptor` holds, and nil where there is no descriptor.
    ///
    /// To be called before the keychain is opened. What follows the line is left for the next to read. `earlier` has been read
    /// before: it may be the same descriptor.
    func read(from descriptor: Int32?, after earlier: Int32? = nil) throws(CommandFailure) -> Passcode? {
        guard let descriptor else { return nil }
        var line = try DescriptorLine(descriptor: FileDescriptor(rawValue: descriptor), option: option).read()
        defer { line?.wipe() }
        guard let line else {
            throw CommandFailure(
                .usage, "there is no line for the \(name) in descriptor \(descriptor)",
                advice: descriptor == earlier
                    ? "Write it in a line of its own after the other one, or name another descriptor with \(option)."
                    : "Write it in the first line, and nothing before it."
            )
        }
        return try passcode(of: line)
    }

    /// The one that was given, or else the one that a person is asked for.
    func given(_ given: consuming Passcode?) throws(CommandFailure) -> Passcode {
        if let given { return given }
        var entered = try ask()
        defer { entered.wipe() }
        return try passcode(of: entered)
    }

    private func passcode(of bytes: [UInt8]) throws(CommandFailure) -> Passcode {
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            return try unsafe bytes.span.withUnsafeBytes { (bytes) throws(KeychainFailure) in
                try unsafe Passcode(typed: bytes, name: name)
            }
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    private func ask() throws(CommandFailure) -> [UInt8] {
        guard FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask for the \(name), and nothing was changed",
                advice: "Give it in the first line of a file descriptor, such as \(option) 3 3<file."
            )
        }
        let prompt = name.prefix(1).uppercased() + name.dropFirst() + ": "
        var entered = try TerminalPrompt.readWithoutEcho(prompt: prompt)
        guard isNew else { return entered }
        var again: [UInt8] = []
        defer { again.wipe() }
        do throws(CommandFailure) {
            again = try TerminalPrompt.readWithoutEcho(prompt: "Again: ".padding(toLength: prompt.count, withPad: " ", startingAt: 0))
            guard entered == again else {
                throw CommandFailure(.usage, "the two entries differ, and nothing was changed", advice: "Run the command again.")
            }
            return entered
        } catch {
            entered.wipe()
            throw error
        }
    }
}

/// The next line of a file descriptor, read byte by byte: what follows is somebody else's.
struct DescriptorLine {
    let descriptor: FileDescriptor
    /// The one that names the descriptor.
    let option: String

    /// Descriptors are waited for as long as persons are.
    private static let patienceSeconds: UInt32 = 5 * 60

    /// The line without its end; nil where there is none any more.
    ///
    /// The caller wipes it.
    func read() throws(CommandFailure) -> [UInt8]? {
        guard InheritedDescriptors.contains(descriptor) else { throw unreadable(.badDescriptor) }
        guard !descriptor.isTerminal else {
            throw CommandFailure(
                .usage, "descriptor \(descriptor.rawValue) is a terminal, which would show what is typed",
                advice: "Leave out \(option) to be asked without echo, or name a file or a pipe."
            )
        }
        var line: [UInt8] = []
        // Never moved while it grows, so that no copy is left behind; one byte more than is allowed, for a line break or to be refused.
        line.reserveCapacity(Passcode.largestByteCount + 2)
        let deadline = Deadline.after(seconds: Self.patienceSeconds)
        var isEnded = false
        do throws(CommandFailure) {
            while !isEnded, line.count <= Passcode.largestByteCount + 1 {
                guard let byte = try readByte(until: deadline) else {
                    guard !line.isEmpty else { return nil }
                    break
                }
                isEnded = byte == UInt8(ascii: "\n")
                if !isEnded { line.append(byte) }
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
    private func readByte(until deadline: Deadline) throws(CommandFailure) -> UInt8? {
        let result: FileDescriptor.ByteRead
        do throws(Errno) {
            result = try descriptor.readByte(until: deadline)
        } catch {
            throw unreadable(error)
        }
        switch result {
        case .byte(let byte): return byte
        case .endOfFile: return nil
        case .timedOut:
            throw CommandFailure(
                .unavailable, "nothing came from descriptor \(descriptor.rawValue), and nothing was changed",
                advice: "Check what writes to it.")
        }
    }

    private func unreadable(_ error: Errno) -> CommandFailure {
        CommandFailure(
            .usage, "descriptor \(descriptor.rawValue) cannot be read: \(error)",
            advice: "Open it for the command, such as \(option) 3 3<file."
        )
    }
}
