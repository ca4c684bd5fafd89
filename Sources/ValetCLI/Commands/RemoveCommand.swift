// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSystem
import Valet

struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove the secret of a key, or all of them.",
        discussion: "There is no way to get a removed secret back."
    )

    @Argument(help: "The key of the secret.", completion: .keys)
    var key: String?

    @Flag(help: "Remove every secret of the valet. Asks on a terminal; else needs --yes.")
    var all = false

    @Flag(help: "With --all: do not ask.")
    var yes = false

    @Flag(help: "A secret that is not there counts as removed.")
    var force = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func validate() throws {
        if all == (key != nil) { throw ValidationError("Give a key, or --all to remove everything.") }
        if yes, !all { throw ValidationError("--yes goes with --all.") }
    }

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        if let key {
            try remove(key, selected, session)
        } else if try isWanted() {
            try session.perform { try selected.valet.removeAllObjects() }
        } else {
            throw CommandFailure(.unavailable, "nothing was removed", advice: "Answer y to remove everything.")
        }
    }

    private func remove(_ key: String, _ selected: SelectedValet, _ session: CommandSession) throws {
        try session.perform {
            try selected.valet.removeObject(forKey: key)
            // A valet takes "not there" for "removed"; the keychain below it has told.
            if !force, let failure = session.lastFailure, failure.status == .itemNotFound { throw failure }
        }
    }

    private func isWanted() throws(CommandFailure) -> Bool {
        if yes { return true }
        guard FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask on, and nothing was removed", advice: "Add --yes if you mean it.")
        }
        return try TerminalPrompt.confirm("Remove every secret of this valet?")
    }
}
