// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock",
        abstract: "Lock the keychain for all programs of this user.",
        discussion: "A keychain that is locked already stays so. Without a passcode there is nothing to lock, and it exits with 3."
    )

    @Flag(help: "Lock also what can be read from the first unlock on, as a restart does.")
    var all = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        _ = try session.requirePasscode()
        try session.performSessionCall { keychain throws(KeychainFailure) in try keychain.lock(all ? .everything : .whenUnlocked) }
    }
}

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Unlock the keychain for all programs of this user.",
        discussion: """
            The passcode is asked for without echo. Where unlocked keys cannot be kept for other programs, as in many containers, it exits \
            with 3; there, give the passcode to each command with --passcode-fd.
            """
    )

    @OptionGroup
    var unlock: UnlockTimeOption

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    func run() throws {
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.forWholeKeychain()
        let status = try session.requirePasscode()
        // Before anybody is asked for a passcode that would be of no use.
        guard status.holder != .processMemory else {
            throw CommandFailure(
                .unavailable, "unlocked keys cannot be kept for other programs here: the system refuses the use of its keyring",
                advice: "Give the passcode to each command with --passcode-fd, or use KeychainSession.unlock in the program."
            )
        }
        let passcode = try PasscodeInput.passcode.given(given)
        try session.performSessionCall { keychain throws(KeychainFailure) in
            try keychain.unlock(passcode, autoLock: unlock.autoLock)
        }
    }
}
