// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

struct PasscodeChangeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "change",
        abstract: "Replace the passcode, and leave the keychain unlocked.",
        discussion: """
            Copies of the keychain from before still open with the old passcode. If somebody may have both, use --rotate: with new keys,
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

    func run() throws {
        let session = try CommandSession.ofCommandItself()
        _ = try session.requirePasscode()
        let current = try PasscodeInput.read(prompt: "Passcode: ", descriptor: descriptor, twice: false)
        let new = try PasscodeInput.read(prompt: "New passcode: ", descriptor: newDescriptor, twice: true, option: "--new-passcode-fd")
        try session.performOnLock { keychain throws(KeychainFailure) in
            try keychain.changePasscode(from: current, to: new, rotatingKeys: rotate, autoLock: .standard)
        }
        try StandardOutput.writeLine("The passcode is changed.")
    }
}
