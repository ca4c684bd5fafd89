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
        let session = try CommandSession.ofCommandItself()
        _ = try session.requirePasscode()
        try session.performOnLock { keychain throws(KeychainFailure) in try keychain.lock(all ? .everything : .whenUnlocked) }
    }
}
