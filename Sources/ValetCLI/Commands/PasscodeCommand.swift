// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

struct PasscodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passcode",
        abstract: "Set, change or remove the passcode of the keychain.",
        discussion: """
            With a passcode the keychain can be locked: then its secrets cannot be read without it, not even by who has all of its files. \
            Nobody can bring back a forgotten passcode, nor what is kept under it.
            """,
        subcommands: [PasscodeSetCommand.self, PasscodeChangeCommand.self, PasscodeRemoveCommand.self]
    )
}
