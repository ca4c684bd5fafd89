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

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    func run() throws {
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.ofCommandItself()
        let passcode = try session.passcodeIfSet(given)
        let key: SharedSecretBytes
        do throws(KeychainFailure) {
            key = try session.keychain.createRecoveryKey(passcode: passcode, replacing: replace)
        } catch {
            throw CommandFailure(recovery: error)
        }
        try RecoveryKeyOutput.write(key, afterDone: "it is made")
    }
}
