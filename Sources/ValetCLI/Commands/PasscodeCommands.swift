// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSystem

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

struct PasscodeSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set the first passcode, and leave the keychain unlocked.",
        discussion: "On a terminal it is asked for twice, without echo. Exits with 5 if a passcode is set already."
    )

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var unlock: UnlockTimeOption

    func run() throws {
        let given = try passcodeDescriptor.read(.firstPasscode)
        let session = try CommandSession.forWholeKeychain()
        let status = try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        // Before anybody is asked for one.
        guard !status.isPasscodeSet else {
            throw CommandFailure(.alreadyThere, "a passcode is set already", advice: "Change it with `valet passcode change`.")
        }
        let passcode = try PasscodeInput.firstPasscode.given(given)
        try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.setPasscode(passcode, autoLock: unlock.autoLock) }
        try StandardOutput.write(
            ["The passcode is set. \(status.holder.afterwards(unlock.autoLock))"], afterAction: "the passcode is set")
    }
}

extension KeyHolderKind {
    /// What becomes of an unlock that a command has made.
    fileprivate func afterwards(_ autoLock: AutoLock) -> String {
        switch self {
        case .kernelKeyring, .kernelKeyringOfUserNamespace:
            "The keychain is unlocked, and \(autoLock.phrase)."
        case .processMemory:
            "Unlocked keys cannot be kept here: from now on, give it to each command with --passcode-fd."
        }
    }
}

struct PasscodeChangeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "change",
        abstract: "Replace the passcode, and leave the keychain unlocked.",
        discussion: """
            Copies of the keychain from before still open with the old passcode. If somebody may have both, use --rotate: with new keys, \
            nothing that is stored from now on can be opened with what they have.
            """
    )

    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp("Read the present passcode from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    @Option(
        name: .customLong("new-passcode-fd"),
        help: ArgumentHelp(
            "Read the new passcode from the first line of this file descriptor; from the second, if it is the same descriptor.",
            valueName: "number"))
    var newDescriptor: Int32?

    @Flag(help: "Make new keys too, and seal every item anew under them.")
    var rotate = false

    @OptionGroup
    var unlock: UnlockTimeOption

    func run() throws {
        let givenCurrent = try PasscodeInput.passcode.read(from: descriptor)
        let givenNew = try PasscodeInput.newPasscode.read(from: newDescriptor, after: descriptor)
        let session = try CommandSession.forWholeKeychain()
        _ = try session.requirePasscode()
        let current = try PasscodeInput.passcode.given(givenCurrent)
        let new = try PasscodeInput.newPasscode.given(givenNew)
        try session.performSessionCall { keychain throws(KeychainFailure) in
            try keychain.changePasscode(from: current, to: new, rotatingKeys: rotate, autoLock: unlock.autoLock)
        }
        try StandardOutput.write(["The passcode is changed."], afterAction: "the passcode is changed")
    }
}

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
        let session = try CommandSession.forWholeKeychain()
        _ = try session.requirePasscode()
        let passcode = try PasscodeInput.passcode.given(given)
        let removal = try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.passcodeRemoval(passcode) }
        try Self.show(removal)
        guard try isWanted(removal) else {
            throw CommandFailure(.unavailable, "the passcode was not removed", advice: "Answer y to remove it.")
        }
        try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.removePasscode(passcode, deleting: removal) }
        try StandardOutput.write(
            ["The passcode is removed, and \(Self.count(removal)) deleted."],
            afterAction: "the passcode is removed, and \(Self.count(removal)) deleted")
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
        guard FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask on, and the passcode was not removed",
                advice: "Add --yes if you mean it.")
        }
        return try TerminalPrompt.confirm("Remove the passcode\(removal.items.isEmpty ? "" : ", and delete \(Self.count(removal))")?")
    }

    private static func count(_ removal: PasscodeRemoval) -> String {
        switch removal.items.count {
        case 0: "no item"
        case 1: "1 item"
        case let count: "\(count) items"
        }
    }
}
