// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// The option that unlocks the keychain for one command, and answers its questions: for containers and scripts.
struct PasscodeOption: ParsableArguments {
    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp(
            """
            Unlock for this command alone, with the passcode in the first line of this file descriptor; it is the answer too where one is \
            asked for.
            """, valueName: "number"))
    var descriptor: Int32?

    /// The passcode that was given; nil if none was.
    ///
    /// To be called before anything else is opened: a descriptor that the caller did not open could be ours.
    func read() throws(CommandFailure) -> Passcode? {
        try PasscodeInput.passcode.read(from: descriptor)
    }
}

/// The option of commands that are about the passcode or need it themselves; it unlocks nothing.
struct PasscodeDescriptorOption: ParsableArguments {
    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp("Read the passcode from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    /// The passcode that was given; nil if none was.
    ///
    /// To be called before anything else is opened: a descriptor that the caller did not open could be ours.
    func read(_ input: PasscodeInput = .passcode, after earlier: Int32? = nil) throws(CommandFailure) -> Passcode? {
        try input.read(from: descriptor, after: earlier)
    }
}

/// The option that gives the password of a backup where there is no terminal.
///
/// It is not the passcode of the keychain, so its option has a name of its own.
struct BackupPasswordOption: ParsableArguments {
    @Option(
        name: .customLong("password-fd"),
        help: ArgumentHelp("Read the password of the backup from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    /// The password that was given; nil if none was.
    ///
    /// To be called before anything else is opened: a descriptor that the caller did not open could be ours.
    func read(_ input: PasscodeInput, after passcode: PasscodeOption) throws(CommandFailure) -> Passcode? {
        try input.read(from: descriptor, after: passcode.descriptor)
    }
}

/// Answers with the passcode from a descriptor, in the place of a person.
///
/// Each question once: an answer that was wrong stays wrong.
final class DescriptorPasscodeVerifier: PresenceVerifier {
    let passcode: Passcode

    init(_ passcode: consuming Passcode) {
        self.passcode = passcode
    }

    var canAsk: Bool { true }

    func ask(_ question: borrowing PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard question.secret == .passcode else { throw .promptUnavailable("--passcode-fd gives the passcode, and no other password") }
        guard question.triesLeft == nil else { throw .promptUnavailable("the passcode from --passcode-fd is wrong") }
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            let copy = try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
            return .secret(copy)
        } catch {
            throw .failed(error.reason)
        }
    }
}
