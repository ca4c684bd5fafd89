// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

struct RecoveryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recovery",
        abstract: "Make a recovery key, or open the keychain with it when its protector is lost.",
        discussion: """
            A recovery key takes the place of the protector, and not of the passcode: while one is set, that is needed too. Whoever has it \
            and the keychain's file needs nothing else of this machine.
            """,
        subcommands: [RecoveryCreateCommand.self, RecoveryUseCommand.self]
    )
}
