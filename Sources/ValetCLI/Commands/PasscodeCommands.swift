// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSystem

struct PasscodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passcode",
        abstract: "Set, change, or remove the passcode of the keychain.",
        discussion: """
            With a passcode, the keychain can be locked: its secrets cannot be read without the passcode, even by someone who has all its \
            files. A forgotten passcode, and everything protected by it, cannot be recovered.
            """,
        subcommands: [PasscodeSetCommand.self, PasscodeChangeCommand.self, PasscodeRemoveCommand.self]
    )
}

struct PasscodeSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set the first passcode, and leave the keychain unlocked.",
        discussion: "On a terminal it is prompted for twice, without echo. Exits with 5 if a passcode is already set."
    )

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var unlock: UnlockTimeOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let given = try passcodeDescriptor.read(.firstPasscode)
        let session = try CommandSession.forWholeKeychain()
        let status = try session.status()
        // Checked before the passcode is prompted for.
        guard !status.isPasscodeSet else { throw CommandFailure.passcodeAlreadySet }
        let passcode = try PasscodeInput.firstPasscode.orPrompt(given)
        try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.setPasscode(passcode, autoLock: unlock.autoLock) }
        try StandardOutput.write(
            ["Set the passcode. \(status.holder.unlockNotice(unlock.autoLock))"], afterAction: "the passcode was set")
    }
}

extension KeyHolderKind {
    /// A sentence about how long the keychain stays unlocked after the command.
    fileprivate func unlockNotice(_ autoLock: AutoLock) -> String {
        switch self {
        case .kernelKeyring, .kernelKeyringOfUserNamespace, .keychaind:
            "The keychain is unlocked and \(autoLock.phrase)."
        case .processMemory:
            "The kernel keyring is not available, so the keychain cannot stay unlocked: pass the passcode to each command with --passcode-fd."
        }
    }
}

struct PasscodeChangeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "change",
        abstract: "Replace the passcode, and leave the keychain unlocked.",
        discussion: """
            Existing copies of the keychain still open with the old passcode. If someone may have a copy and the passcode, use --rotate: items \
            stored from now on cannot be opened with them.
            """
    )

    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp("Read the current passcode from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    @Option(
        name: .customLong("new-passcode-fd"),
        help: ArgumentHelp(
            "Read the new passcode from the first line of this file descriptor; from the second, if it is the same descriptor.",
            valueName: "number"))
    var newDescriptor: Int32?

    @Flag(help: "Also create new keys and re-encrypt every item.")
    var rotate = false

    @OptionGroup
    var unlock: UnlockTimeOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let givenCurrent = try PasscodeInput.passcode.read(from: descriptor)
        let givenNew = try PasscodeInput.newPasscode.read(from: newDescriptor, after: descriptor)
        let session = try CommandSession.forWholeKeychain()
        _ = try session.requirePasscode()
        let current = try PasscodeInput.passcode.orPrompt(givenCurrent)
        let new = try PasscodeInput.newPasscode.orPrompt(givenNew)
        try session.performSessionCall { keychain throws(KeychainFailure) in
            try keychain.changePasscode(from: current, to: new, rotatingKeys: rotate, autoLock: unlock.autoLock)
        }
        try StandardOutput.write(["Changed the passcode."], afterAction: "the passcode was changed")
    }
}

struct PasscodeRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove the passcode, and delete the items that require one.",
        discussion: """
            Lists the items of all programs that will be deleted, and asks for confirmation on the terminal. Without a terminal and without \
            --yes, only lists them. The remaining items can then be read without a passcode.
            """
    )

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.forWholeKeychain()
        _ = try session.requirePasscode()
        let passcode = try PasscodeInput.passcode.orPrompt(given)
        let removal = try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.passcodeRemoval(passcode) }
        try Self.show(removal)
        try Confirmation.require(
            "Remove the passcode\(removal.items.isEmpty ? "" : " and delete \(Self.count(removal))")?", isGiven: yes, "removal",
            otherwise: "the passcode was not removed")
        try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.removePasscode(passcode, deleting: removal) }
        try StandardOutput.write(
            ["Removed the passcode and deleted \(Self.count(removal))."],
            afterAction: "removed the passcode and deleted \(Self.count(removal))")
    }

    private static func show(_ removal: PasscodeRemoval) throws(CommandFailure) {
        guard !removal.items.isEmpty else { return }
        try StandardOutput.writeLine(
            "\(count(removal)) \(removal.items.count == 1 ? "requires" : "require") a passcode and will be deleted:")
        for item in removal.items {
            guard let name = item.name else {
                try StandardOutput.writeLine("  an item that cannot be read")
                continue
            }
            try StandardOutput.writeLine(
                "  \(ItemListing.escapingUnprintable(name.account)) of \(ItemListing.escapingUnprintable(name.service))")
        }
    }

    private static func count(_ removal: PasscodeRemoval) -> String {
        switch removal.items.count {
        case 0: "no items"
        case 1: "1 item"
        case let count: "\(count) items"
        }
    }
}
