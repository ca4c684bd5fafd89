// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

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
        let session = try CommandSession.ofCommandItself()
        _ = try session.requirePasscode()
        let current = try PasscodeInput.passcode.given(givenCurrent)
        let new = try PasscodeInput.newPasscode.given(givenNew)
        try session.performOnLock { keychain throws(KeychainFailure) in
            try keychain.changePasscode(from: current, to: new, rotatingKeys: rotate, autoLock: unlock.autoLock)
        }
        try StandardOutput.write(["The passcode is changed."], afterDone: "the passcode is changed")
    }
}
