// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

/// A source of a passcode, password or recovery key: the first line of a file descriptor, or a prompt on the terminal without echo.
///
/// Arguments and the environment are not sources, because other processes can read them.
struct PasscodeInput {
    /// The name in prompts and messages.
    let name: String
    /// The option that passes the descriptor.
    ///
    /// Messages name it where there is no terminal.
    let option: String
    /// A new passcode is prompted for twice.
    let isNew: Bool

    static let passcode = PasscodeInput(name: "passcode", option: "--passcode-fd", isNew: false)
    static let firstPasscode = PasscodeInput(name: "new passcode", option: "--passcode-fd", isNew: true)
    static let newPasscode = PasscodeInput(name: "new passcode", option: "--new-passcode-fd", isNew: true)
    static let recoveryKey = PasscodeInput(name: "recovery key", option: "--recovery-key-fd", isNew: false)
    static let password = PasscodeInput(name: "password of the backup", option: "--password-fd", isNew: false)
    static let newPassword = PasscodeInput(name: "password of the backup", option: "--password-fd", isNew: true)

    /// Reads the first line of `descriptor`; returns nil if `descriptor` is nil.
    ///
    /// Call this before the keychain is opened. The rest of the input stays unread. `earlier` is a descriptor from which a line was read
    /// before; it may be the same descriptor.
    func read(from descriptor: Int32?, after earlier: Int32? = nil) throws(CommandFailure) -> Passcode? {
        guard let descriptor else { return nil }
        var line = try DescriptorLine(descriptor: FileDescriptor(rawValue: descriptor), option: option).read()
        defer { line?.wipe() }
        guard let line else {
            throw CommandFailure(
                .usage, "file descriptor \(descriptor) ended before a line with the \(name)",
                advice: descriptor == earlier
                    ? "Write it on the next line of the same file, or give another descriptor with \(option)."
                    : "Write it on the first line of the file."
            )
        }
        return try passcode(of: line)
    }

    /// Returns the given passcode, or prompts for one.
    func orPrompt(_ given: consuming Passcode?) throws(CommandFailure) -> Passcode {
        if let given { return given }
        var entered = try prompt()
        defer { entered.wipe() }
        return try passcode(of: entered)
    }

    private func passcode(of bytes: [UInt8]) throws(CommandFailure) -> Passcode {
        guard !bytes.isEmpty else {
            throw CommandFailure(.usage, "no \(name) was entered", advice: "Nothing was changed. Run the command again, and enter it.")
        }
        do throws(KeychainFailure) {
            // The pointer is used within the closure only.
            return try unsafe bytes.span.withUnsafeBytes { (bytes) throws(KeychainFailure) in
                try unsafe Passcode(typed: bytes, name: name)
            }
        } catch {
            throw CommandFailure(passcode: error)
        }
    }

    private func prompt() throws(CommandFailure) -> [UInt8] {
        guard FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "standard input is not a terminal, so the \(name) cannot be prompted for; nothing was changed",
                advice: "Pass it on the first line of a file descriptor, such as `\(option) 3 3<file`."
            )
        }
        let prompt = name.prefix(1).uppercased() + name.dropFirst() + ": "
        var entered = try CommandPrompt.readWithoutEcho(prompt: prompt)
        guard isNew else { return entered }
        var again: [UInt8] = []
        defer { again.wipe() }
        do throws(CommandFailure) {
            again = try CommandPrompt.readWithoutEcho(prompt: "Again: ".padding(toLength: prompt.count, withPad: " ", startingAt: 0))
            guard entered == again else {
                throw CommandFailure(.usage, "the two entries do not match; nothing was changed", advice: "Run the command again.")
            }
            return entered
        } catch {
            entered.wipe()
            throw error
        }
    }
}

/// A question that has to be answered with yes before a command changes something that cannot be undone.
enum Confirmation {
    /// Asks on the terminal, and throws unless the answer is yes.
    ///
    /// `isGiven` says that the person confirmed with `flag`: then nothing is asked. Messages call the change `action`, such as "removal",
    /// and end with `outcome`, such as "nothing was removed". `advice` is for another answer than yes.
    static func require(
        _ question: @autoclosure () throws(CommandFailure) -> String, isGiven: Bool, _ action: String, flag: String = "--yes",
        otherwise outcome: String, advice: String = "Answer y to confirm."
    ) throws(CommandFailure) {
        if isGiven { return }
        try requireTerminal(isGiven: isGiven, action, flag: flag, otherwise: outcome)
        guard try CommandPrompt.confirm(question()) else {
            throw CommandFailure(.unavailable, "not confirmed; \(outcome)", advice: advice)
        }
    }

    /// Throws if the question could not be asked, before the command begins what it is about.
    static func requireTerminal(
        isGiven: Bool, _ action: String, flag: String = "--yes", otherwise outcome: String
    ) throws(CommandFailure) {
        guard isGiven || FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "standard input is not a terminal, so the \(action) cannot be confirmed; \(outcome)",
                advice: "Add \(flag) to confirm.")
        }
    }
}

/// The next line of a file descriptor.
///
/// Reads byte by byte, because the input after the line belongs to another reader.
struct DescriptorLine {
    let descriptor: FileDescriptor
    /// The option that named the descriptor.
    let option: String

    /// The deadline for a line, the same as for a prompt.
    private static let timeoutSeconds: UInt32 = 5 * 60

    /// Returns the line without its end, or nil at the end of the input.
    ///
    /// The caller wipes the line.
    func read() throws(CommandFailure) -> [UInt8]? {
        guard InheritedDescriptors.contains(descriptor) else { throw unreadable(.badDescriptor) }
        guard !descriptor.isTerminal else {
            throw CommandFailure(
                .usage, "file descriptor \(descriptor.rawValue) is a terminal, which would echo the input",
                advice: "Omit \(option) to be prompted without echo, or use a file or a pipe."
            )
        }
        var line: [UInt8] = []
        // The capacity includes a line break and one byte more than allowed. The array never grows, so it leaves no copies in memory.
        line.reserveCapacity(Passcode.largestByteCount + 2)
        let deadline = Deadline.after(seconds: Self.timeoutSeconds)
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
        // A carriage return is part of the line break, because it cannot be typed.
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return line
    }

    /// Returns the next byte, or nil at the end of the input.
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
                .unavailable, "file descriptor \(descriptor.rawValue) sent nothing for 5 minutes; nothing was changed",
                advice: "Check the program that writes to it.")
        }
    }

    private func unreadable(_ error: Errno) -> CommandFailure {
        CommandFailure(
            .usage, "cannot read file descriptor \(descriptor.rawValue): \(error)",
            advice: "Open the descriptor for the command, for example `\(option) 3 3<file`."
        )
    }
}
