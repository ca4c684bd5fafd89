// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "verify", abstract: "Check every item of the keychain.")

    @Flag(help: "Empty the quarantine.")
    var purge = false

    func run() throws {}
}
