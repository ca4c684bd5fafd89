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
