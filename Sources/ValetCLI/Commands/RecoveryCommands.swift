// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

struct RecoveryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recovery",
        abstract: "Make a recovery key, or open the keychain with it when its protector is lost.",
        discussion: """
            A recovery key takes the place of the protector, and not of the passcode: while one is set, that is needed too. Whoever has it \
            and the keychain's file needs nothing else of this machine.
            """,
        subcommands: [RecoveryCreateCommand.self, RecoveryUseCommand.self]
    )
}

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
        let session = try CommandSession.forWholeKeychain()
        let passcode = try session.passcodeIfSet(given)
        let key: SharedSecretBytes
        do throws(KeychainFailure) {
            key = try session.keychain.createRecoveryKey(passcode: passcode, replacing: replace)
        } catch {
            throw CommandFailure(recovery: error)
        }
        try RecoveryKeyOutput.write(key, afterAction: "it is made")
    }
}

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
        let session = try CommandSession.forWholeKeychain()
        let key = try PasscodeInput.recoveryKey.given(givenKey)
        let isPasscodeSet = try session.performProtectorCall { keychain throws(KeychainFailure) in
            try keychain.recoveryNeedsPasscode(key.bytes)
        }
        let passcode: Passcode? = isPasscodeSet ? try PasscodeInput.passcode.given(givenPasscode) : nil
        try session.performProtectorCall { keychain throws(KeychainFailure) in
            try keychain.useRecoveryKey(key.bytes, protector: protector.kind, passcode: passcode)
        }
        try StandardOutput.write(
            ["The keychain opens again. Its protector is now \(protector.rawValue)."], afterAction: "access is restored")
    }
}

/// A recovery key on its one way out: alone on standard output, and what is to be said of it on standard error.
enum RecoveryKeyOutput {
    static func write(_ key: SharedSecretBytes, afterAction done: String) throws(CommandFailure) {
        StandardError.write("This recovery key restores access when what protects the keychain is lost. Write it down and keep it apart:")
        // Whoever was to read it may be gone, and that must be said.
        CurrentProcess.ignoreBrokenPipeSignal()
        do throws(Errno) {
            try FileDescriptor.standardOutput.writeAll(key.secret)
            try FileDescriptor.standardOutput.writeAll("\n".utf8)
        } catch {
            throw CommandFailure(
                .unavailable, "\(done), but its recovery key cannot be written out: \(error)",
                advice: "Nobody has that key. Make another with `valet recovery create --replace`.")
        }
    }
}
