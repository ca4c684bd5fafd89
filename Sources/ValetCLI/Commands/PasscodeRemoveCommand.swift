// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore

struct PasscodeRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove the passcode, and delete the items that cannot be without one.",
        discussion: """
            Names what will be deleted, of all programs, and asks on the terminal. Elsewhere, without --yes, nothing is removed and the \
            names show what would be. Items that are not deleted can then be read without a passcode.
            """
    )

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @Flag(help: "Do not ask.")
    var yes = false

    func run() throws {
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.ofCommandItself()
        _ = try session.requirePasscode()
        let passcode = try PasscodeInput.passcode.given(given)
        let removal = try session.performOnLock { keychain throws(KeychainFailure) in try keychain.passcodeRemoval(passcode) }
        try Self.show(removal)
        guard try isWanted(removal) else {
            throw CommandFailure(.unavailable, "the passcode was not removed", advice: "Answer y to remove it.")
        }
        try session.performOnLock { keychain throws(KeychainFailure) in try keychain.removePasscode(passcode, deleting: removal) }
        try StandardOutput.write(
            ["The passcode is removed, and \(Self.count(removal)) deleted."],
            afterDone: "the passcode is removed, and \(Self.count(removal)) deleted")
    }

    private static func show(_ removal: PasscodeRemoval) throws(CommandFailure) {
        guard !removal.items.isEmpty else { return }
        try StandardOutput.writeLine("\(count(removal)) cannot be without a passcode:")
        for item in removal.items {
            guard let name = item.name else {
                try StandardOutput.writeLine("  one that cannot be read")
                continue
            }
            try StandardOutput.writeLine("  \(ItemListing.printable(name.account)) of \(ItemListing.printable(name.service))")
        }
    }

    private func isWanted(_ removal: PasscodeRemoval) throws(CommandFailure) -> Bool {
        if yes { return true }
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask on, and the passcode was not removed",
                advice: "Add --yes if you mean it.")
        }
        return try Terminal().confirm("Remove the passcode\(removal.items.isEmpty ? "" : ", and delete \(Self.count(removal))")?")
    }

    private static func count(_ removal: PasscodeRemoval) -> String {
        switch removal.items.count {
        case 0: "no item"
        case 1: "1 item"
        case let count: "\(count) items"
        }
    }
}
