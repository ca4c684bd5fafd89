// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine

struct ProtectorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "protector",
        abstract: "Choose what holds the secret that opens the keychain's file.",
        discussion: "`valet status` tells which protector the keychain has, and what that protects from.",
        subcommands: [ProtectorSetCommand.self]
    )
}

struct ProtectorSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Move the keychain to another protector, with all its items.",
        discussion: """
            tpm2: a TPM 2.0 chip, the one that KEYCHAIN_TPM_TCTI names; the keychain opens on this machine alone, and with a passcode set \
            the chip limits guesses. keyFile: a file beside the keychain. systemdCredential: the credential keychain-device-secret of a \
            service. The old protector opens the keychain no longer; copies made before stay as they were.

            For tpm2 a recovery key is made, unless there is one: it goes to standard output, once.
            """
    )

    @Argument(help: ArgumentHelp("keyFile, systemdCredential or tpm2.", valueName: "protector"))
    var protector: ProtectorOption

    @Flag(help: "Make no recovery key: if the TPM is cleared or lost, so is the keychain.")
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
            if protector == .tpm2, !withoutRecovery { StandardError.write("The recovery key that there was before is still the one.") }
            try StandardOutput.write([done], afterAction: "the protector is set")
            return
        }
        StandardError.write(done)
        try RecoveryKeyOutput.write(key, afterAction: "the protector is set")
    }

    /// What the chip says is of no weight for what was done.
    private func warn(_ session: CommandSession) {
        let chip: KeychainReport.Chip?
        do throws(KeychainFailure) { chip = try session.keychain.report(asksChip: true).store?.chip } catch { return }
        guard case .status(let status) = chip else { return }
        for warning in TPMDescription.warnings(status) { StandardError.write("Warning: \(warning).") }
    }
}

/// What can hold the device secret, as it is named on the command line.
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
