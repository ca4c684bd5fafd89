// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

struct ProtectorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "protector",
        abstract: "Choose what holds the secret that opens the keychain's file.",
        discussion: "`valet status` tells which protector the keychain has, and what that protects from.",
        subcommands: [ProtectorSetCommand.self]
    )
}
