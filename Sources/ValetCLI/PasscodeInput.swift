// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine

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
        var line = try PasscodeLine(descriptor: descriptor, option: option).read()
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
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask for the \(name), and nothing was changed",
                advice: "Give it in the first line of a file descriptor, such as \(option) 3 3<file."
            )
        }
        let terminal = Terminal()
        let prompt = name.prefix(1).uppercased() + name.dropFirst() + ": "
        var entered = try terminal.readWithoutEcho(prompt: prompt)
        guard isNew else { return entered }
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
}
