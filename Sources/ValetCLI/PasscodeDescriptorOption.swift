// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

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
