// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

struct RecoveryUseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "use",
        abstract: "Open the keychain with its recovery key, and give it a new protector.",
        discussion: """
            For when the TPM was cleared or replaced, or the key file is lost. No item is changed. The recovery key stays what it is; it is \
            asked for without echo, and never an argument.
            """
    )

    @Option(help: ArgumentHelp("The new protector: keyFile, systemdCredential or tpm2.", valueName: "protector"))
    var protector = ProtectorOption.keyFile

    @Option(
        name: .customLong("recovery-key-fd"),
        help: ArgumentHelp("Read the recovery key from the first line of this file descriptor.", valueName: "number"))
    var keyDescriptor: Int32?

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    func run() throws {
        let givenKey = try PasscodeInput.recoveryKey.read(from: keyDescriptor)
        let givenPasscode = try passcodeDescriptor.read(after: keyDescriptor)
        let session = try CommandSession.ofCommandItself()
        let key = try PasscodeInput.recoveryKey.given(givenKey)
        let isPasscodeSet = try session.performOnProtector { keychain throws(KeychainFailure) in
            try keychain.recoveryNeedsPasscode(key.bytes)
        }
        let passcode: Passcode? = isPasscodeSet ? try PasscodeInput.passcode.given(givenPasscode) : nil
        try session.performOnProtector { keychain throws(KeychainFailure) in
            try keychain.useRecoveryKey(key.bytes, protector: protector.kind, passcode: passcode)
        }
        try StandardOutput.write(
            ["The keychain opens again. Its protector is now \(protector.rawValue)."], afterDone: "access is restored")
    }
}
