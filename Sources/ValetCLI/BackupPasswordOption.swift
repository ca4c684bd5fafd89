// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

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
