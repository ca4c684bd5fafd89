// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

struct PasscodeSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set the first passcode, and leave the keychain unlocked.",
        discussion: "On a terminal it is asked for twice, without echo. Exits with 5 if a passcode is set already."
    )

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var unlock: UnlockTimeOption

    func run() throws {
        let given = try passcodeDescriptor.read(.firstPasscode)
        let session = try CommandSession.ofCommandItself()
        let status = try session.performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
        // Before anybody is asked for one.
        guard !status.isPasscodeSet else {
            throw CommandFailure(.alreadyThere, "a passcode is set already", advice: "Change it with `valet passcode change`.")
        }
        let passcode = try PasscodeInput.firstPasscode.given(given)
        try session.performOnLock { keychain throws(KeychainFailure) in try keychain.setPasscode(passcode, autoLock: unlock.autoLock) }
        try StandardOutput.write(
            ["The passcode is set. \(status.holder.afterwards(unlock.autoLock))"], afterDone: "the passcode is set")
    }
}

extension KeyHolderKind {
    /// What becomes of an unlock that a command has made.
    fileprivate func afterwards(_ autoLock: AutoLock) -> String {
        switch self {
        case .kernelKeyring, .kernelKeyringOfUserNamespace:
            "The keychain is unlocked, and \(autoLock.phrase)."
        case .processMemory:
            "Unlocked keys cannot be kept here: from now on, give it to each command with --passcode-fd."
        }
    }
}
