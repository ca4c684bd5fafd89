// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine

struct ProtectorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "protector",
        abstract: "Choose what protects the keychain file: a key file, a systemd credential, or a TPM.",
        discussion: "`valet status` shows the current protector and what it protects against.",
        subcommands: [ProtectorSetCommand.self]
    )
}

struct ProtectorSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change the protector of the keychain.",
        discussion: """
            The protectors are:
              keyFile            a file that only its owner can read (the default)
              systemdCredential  the credential keychain-device-secret of a systemd service
              tpm2               the TPM 2.0 that KEYCHAIN_TPM_TCTI names

            With tpm2, the keychain opens on this machine only, and the TPM limits guesses of the passcode. tpm2 also creates a recovery key \
            unless one exists. It is written once, to standard output. Existing copies of the keychain keep their old protector.
            """
    )

    @Argument(help: ArgumentHelp("keyFile, systemdCredential, or tpm2.", valueName: "protector"))
    var protector: ProtectorOption

    @Flag(help: "Do not create a recovery key. If the TPM is cleared or lost, the keychain is lost.")
    var withoutRecovery = false

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    func run() throws {
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.forWholeKeychain()
        let passcode = try session.passcodeIfSet(given)
        let key = try session.performProtectorCall { keychain throws(KeychainFailure) in
            try keychain.setProtector(
                protector.kind, passcode: passcode, creatingRecoveryKey: protector == .tpm2 && !withoutRecovery)
        }
        let done = "The protector of the keychain is now \(protector.rawValue)."
        if protector == .tpm2 { warn(session) }
        guard let key else {
            if protector == .tpm2, !withoutRecovery { StandardError.write("The existing recovery key remains valid.") }
            try StandardOutput.write([done], afterAction: "the protector was set")
            return
        }
        StandardError.write(done)
        try RecoveryKeyOutput.write(key, afterAction: "the protector was set")
    }

    /// Shows warnings about the TPM.
    ///
    /// Best effort: the protector is already set.
    private func warn(_ session: CommandSession) {
        let tpmState: KeychainReport.TPMState?
        do throws(KeychainFailure) { tpmState = try session.keychain.report(queriesTPM: true).store?.tpmState } catch { return }
        guard case .status(let status) = tpmState else { return }
        for warning in TPMDescription.warnings(status) { StandardError.write("Warning: \(warning).") }
    }
}

/// The protector of the device secret, as on the command line.
enum ProtectorOption: String, CaseIterable, ExpressibleByArgument {
    case keyFile
    case systemdCredential
    case tpm2

    var kind: DeviceProtectorKind {
        switch self {
        case .keyFile: .keyFile
        case .systemdCredential: .systemdCredential
        case .tpm2: .tpm2
        }
    }
}
