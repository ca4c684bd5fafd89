// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct RecoveryCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a recovery key and write it to standard output, once.",
        discussion: "Nothing else goes to standard output. The keychain itself cannot show the key again."
    )

    @Flag(help: "Make one though there is one already; that opens nothing afterwards.")
    var replace = false

    @Option(
        name: .customLong("passcode-fd"),
        help: ArgumentHelp("Read the passcode from the first line of this file descriptor.", valueName: "number"))
    var descriptor: Int32?

    func run() throws {
        let given = try PasscodeInput.passcode.read(from: descriptor)
        let session = try CommandSession.ofCommandItself()
        let isPasscodeSet = try session.performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }.isPasscodeSet
        let passcode: Passcode? = isPasscodeSet ? try PasscodeInput.passcode.given(given) : nil
        let key: SharedSecretBytes
        do throws(KeychainFailure) {
            key = try session.keychain.createRecoveryKey(passcode: passcode, replacing: replace)
        } catch {
            throw CommandFailure(recovery: error)
        }
        try RecoveryKeyOutput.write(key, afterDone: "it is made")
    }
}
