// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// The option that unlocks the keychain for one command and answers its prompts, for containers and scripts.
struct PasscodeOption: ParsableArguments {
    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp(
            """
            Unlock the keychain for this command only, with the passcode on the first line of this file descriptor. It also answers \
            prompts for the passcode.
            """, valueName: "number"))
    var descriptor: Int32?

    /// Reads the passcode; returns nil without the option.
    ///
    /// Call this before opening any file: otherwise a descriptor that the caller did not open could be one of this process.
    func read() throws(CommandFailure) -> Passcode? {
        try PasscodeInput.passcode.read(from: descriptor)
    }
}

/// The option that passes the passcode to commands that manage it.
///
/// It does not unlock the keychain.
struct PasscodeDescriptorOption: ParsableArguments {
    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp("Read the passcode from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    /// Reads the passcode; returns nil without the option.
    ///
    /// Call this before opening any file: otherwise a descriptor that the caller did not open could be one of this process.
    func read(_ input: PasscodeInput = .passcode, after earlier: Int32? = nil) throws(CommandFailure) -> Passcode? {
        try input.read(from: descriptor, after: earlier)
    }
}

/// The option that passes the password of a backup, which is not the passcode of the keychain.
struct BackupPasswordOption: ParsableArguments {
    @Option(
        name: .customLong("password-fd"),
        help: ArgumentHelp("Read the backup password from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    /// Reads the password; returns nil without the option.
    ///
    /// Call this before opening any file: otherwise a descriptor that the caller did not open could be one of this process.
    func read(_ input: PasscodeInput, after passcode: PasscodeOption) throws(CommandFailure) -> Passcode? {
        try input.read(from: descriptor, after: passcode.descriptor)
    }
}

/// Answers prompts with the passcode from a descriptor.
///
/// It answers each prompt once: after a wrong answer, the same answer would be wrong again.
final class DescriptorPasscodePrompter: PresencePrompter {
    let passcode: Passcode

    init(_ passcode: consuming Passcode) {
        self.passcode = passcode
    }

    var canAsk: Bool { true }

    func ask(_ question: borrowing PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard question.secret == .passcode else {
            throw .promptUnavailable(
                "--passcode-fd provides the keychain passcode, but an application password is required; run the command in a terminal")
        }
        guard question.triesLeft == nil else { throw .promptUnavailable("the passcode from --passcode-fd is incorrect") }
        do throws(KeychainFailure) {
            // The pointer is used within the closure only.
            let copy = try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
            return .secret(copy)
        } catch {
            throw .failed(error.reason)
        }
    }
}

/// Arguments that a command does not have: what people type at first where a secret is prompted for.
///
/// The error must not repeat them, as the parser's would, even if they look like an option.
struct SecretArguments: ParsableArguments {
    @Argument(parsing: .allUnrecognized, help: .hidden)
    var values: [String] = []

    /// Throws if there are such arguments.
    func requireNone(outcome: String, advice: String) throws(CommandFailure) {
        guard !values.isEmpty else { return }
        let isOption = values.contains { $0.hasPrefix("-") }
        throw CommandFailure(
            .usage,
            isOption
                ? "an argument is not an option of this command, and a secret is never an argument; \(outcome)"
                : "a secret is never an argument, because other users and the history of the shell could see it; \(outcome)",
            advice: (isOption ? "`valet help` with the name of the command lists its options. " : "") + advice)
    }

    /// Throws if there are such arguments, for a command that prompts for a passcode.
    func requireNone() throws(CommandFailure) {
        try requireNone(outcome: "nothing was changed", advice: "Omit it to be prompted, or pass it through a file descriptor.")
    }
}
