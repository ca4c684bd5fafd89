// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

struct RecoveryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recovery",
        abstract: "Create a recovery key, or use it when the protector of the keychain is lost.",
        discussion: """
            A recovery key replaces the protector, not the passcode: if a passcode is set, both are needed. Anyone with the recovery key and \
            the keychain file needs nothing else from this machine.
            """,
        subcommands: [RecoveryCreateCommand.self, RecoveryUseCommand.self]
    )
}

struct RecoveryCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a recovery key and write it to standard output, once.",
        discussion: "Nothing else is written to standard output. The key cannot be shown again."
    )

    @Flag(help: "Replace the existing recovery key, which stops working.")
    var replace = false

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.forWholeKeychain()
        let passcode = try session.passcodeIfSet(given)
        let key: SharedSecretBytes
        do throws(KeychainFailure) {
            key = try session.keychain.createRecoveryKey(passcode: passcode, replacing: replace)
        } catch {
            throw CommandFailure(recovery: error)
        }
        try RecoveryKeyOutput.write(key, afterAction: "the keychain was changed")
    }
}

struct RecoveryUseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "use",
        abstract: "Open the keychain with its recovery key, and set a new protector.",
        discussion: """
            Use this if the TPM was cleared or replaced, or the key file is lost. No item is changed, and the recovery key remains valid. It is \
            prompted for without echo and is never an argument.

            If the keychain has no passcode, the command asks whether that is expected: an attacker may have replaced the keychain file by \
            one without the passcode that you set. Without a terminal, --accept-no-passcode is required.
            """
    )

    @Option(help: ArgumentHelp("The new protector: keyFile, systemdCredential, or tpm2.", valueName: "protector"))
    var protector = ProtectorOption.keyFile

    @Option(
        name: .customLong("recovery-key-fd"),
        help: ArgumentHelp("Read the recovery key from the first line of this file descriptor.", valueName: "number"))
    var keyDescriptor: Int32?

    @Flag(help: "Do not ask for confirmation if the keychain has no passcode.")
    var acceptNoPasscode = false

    @Flag(help: "Accept older keys, with the passcode of that time, if no newer copy of the keychain file is left.")
    var acceptKeybag = false

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let givenKey = try PasscodeInput.recoveryKey.read(from: keyDescriptor)
        let givenPasscode = try passcodeDescriptor.read(after: keyDescriptor)
        let session = try CommandSession.forWholeKeychain()
        let key = try PasscodeInput.recoveryKey.orPrompt(givenKey)
        let isPasscodeSet: Bool
        do throws(KeychainFailure) {
            isPasscodeSet = try session.keychain.recoveryNeedsPasscode(key.bytes, acceptingOlderKeybag: acceptKeybag)
        } catch {
            guard case .unexpectedState(.keybagReplaced)? = error.cause else { throw CommandFailure(protector: error) }
            throw CommandFailure(
                .damaged, error.reason,
                advice: "Nothing was changed. Put the newest copy of the keychain file back. If there is none and you trust this one, add "
                    + "--accept-keybag; then run `valet repair --accept-content --accept-keybag`.")
        }
        if !isPasscodeSet {
            try Confirmation.require(
                "This keychain has no passcode. If you had set one, the keychain file was replaced. Continue without a passcode?",
                isGiven: acceptNoPasscode, "missing passcode", flag: "--accept-no-passcode", otherwise: "nothing was changed")
        }
        let passcode: Passcode? = isPasscodeSet ? try PasscodeInput.passcode.orPrompt(givenPasscode) : nil
        try session.performProtectorCall { keychain throws(KeychainFailure) in
            try keychain.useRecoveryKey(
                key.bytes, protector: protector.kind, passcode: passcode, acceptingNoPasscode: !isPasscodeSet,
                acceptingOlderKeybag: acceptKeybag)
        }
        try StandardOutput.write(
            ["Restored access to the keychain. Its protector is now \(protector.rawValue)."], afterAction: "access was restored")
    }
}

/// Writes a recovery key to standard output, and the instructions to standard error.
enum RecoveryKeyOutput {
    static func write(_ key: SharedSecretBytes, afterAction action: String) throws(CommandFailure) {
        StandardError.write(
            "This recovery key restores access if the keychain's protector is lost. Write it down and store it separately; it is shown only once:"
        )
        // If the reader of a pipe is gone, the write must fail instead of ending the process.
        CurrentProcess.ignoreBrokenPipeSignal()
        do throws(Errno) {
            try FileDescriptor.standardOutput.writeAll(key.secret)
            try FileDescriptor.standardOutput.writeAll("\n".utf8)
        } catch {
            throw CommandFailure(
                .unavailable, "\(action), but the recovery key could not be written to standard output: \(error)",
                advice: "The key was lost. Create another with `valet recovery create --replace`.")
        }
    }
}
