// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock",
        abstract: "Lock the keychain for all programs of this user.",
        discussion: "Locking a locked keychain is a no-op. Without a passcode there is nothing to lock; the command exits with 3."
    )

    @Flag(help: "Also lock items with after-first-unlock accessibility, as a restart does.")
    var all = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        do throws(KeychainFailure) {
            try session.user.lock(all ? .everything : .whenUnlocked)
        } catch {
            guard error.refusal == .passcodeNotSet else { throw CommandFailure(passcode: error) }
            throw CommandFailure(.unavailable, error.reason, advice: CommandFailure.noPasscode.advice)
        }
    }
}

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Unlock the keychain for all programs of this user.",
        discussion: """
            The passcode is prompted for without echo. If the kernel keyring is not available, as in many containers, the command exits with \
            3; pass the passcode to each command with --passcode-fd instead.
            """
    )

    @OptionGroup
    var unlock: UnlockTimeOption

    @OptionGroup
    var passcodeDescriptor: PasscodeDescriptorOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let given = try passcodeDescriptor.read()
        let session = try CommandSession.forWholeKeychain()
        let status = try session.requirePasscode()
        // Checked before the passcode is prompted for.
        guard status.holder != .processMemory else {
            throw CommandFailure(
                .unavailable, "the keychain cannot stay unlocked: the kernel keyring is not available",
                advice: "Pass the passcode to each command with --passcode-fd, or call `KeychainSession.unlock` in your program."
            )
        }
        let passcode = try PasscodeInput.passcode.orPrompt(given)
        try session.performSessionCall { keychain throws(KeychainFailure) in
            try keychain.unlock(passcode, autoLock: unlock.autoLock)
        }
    }
}
