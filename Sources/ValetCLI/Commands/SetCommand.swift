// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Valet

struct SetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Store a secret under a key.",
        discussion: """
            The secret is what standard input holds, byte for byte; a newline at its end is part of it, so use printf and not echo. \
            On a terminal it is asked for twice, without echo. A secret that is already there is replaced.
            """
    )

    @Argument(help: "The key to store the secret under.")
    var key: String

    @Flag(help: "Leave a secret that is already there as it is, and exit with 5.")
    var noOverwrite = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetSelection

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        // Before anybody is asked for a secret that cannot be stored.
        guard !key.isEmpty else { throw CommandFailure(.emptyKey, because: nil) }
        if SecretInput.isPerson { try session.requireUnlocked(for: selected.accessibility) }
        let secret = try SecretInput.read()
        try session.perform {
            if noOverwrite {
                try selected.add(secret, forKey: key)
            } else {
                try selected.valet.setObject(secret, forKey: key)
            }
        }
    }
}
