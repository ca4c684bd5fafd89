// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import Valet

struct SetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Store a secret under a key.",
        discussion: """
            The secret is read from standard input byte for byte, including a final newline, so use printf instead of echo. On a terminal it \
            is prompted for twice, without echo. An existing secret is replaced.

            Programs find the items of one valet only, so there is a warning if the same key also exists under the same identifier for another \
            program or with another accessibility. The same key under other identifiers is usual; `valet apps` lists all valets.
            """
    )

    @Argument(help: "The key to store the secret under.")
    var key: String

    @OptionGroup
    var secret: SecretArguments

    @Flag(help: "Do not replace an existing secret; exit with 5.")
    var noOverwrite = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func run() throws {
        try secret.requireNone(
            outcome: "nothing was stored", advice: "Run `valet set KEY` to be prompted, or pipe the secret to it with printf.")
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        // Checked before the secret is prompted for.
        guard !key.isEmpty else { throw CommandFailure(.emptyKey, cause: nil) }
        if SecretInput.isInteractive { try session.requireUnlocked(for: selected.accessibility) }
        let secret = try SecretInput.read()
        do throws(CommandFailure) {
            try session.perform {
                if noOverwrite {
                    try selected.add(secret, forKey: key)
                } else {
                    try selected.valet.setObject(secret, forKey: key)
                }
            }
        } catch {
            guard error.status == .alreadyExists, let place = session.placeOfOtherAccessibility(of: key, in: selected) else { throw error }
            throw CommandFailure.otherAccessibility("an item with this key already exists", at: place, than: selected)
        }
        session.warnOfOtherPlaces(of: [key], than: selected)
    }
}

/// The secret for `valet set`: standard input, or two prompts on the terminal without echo.
enum SecretInput {
    /// The limit keeps endless input from filling the memory.
    private static let maximumByteCount = 64 << 20

    static var isInteractive: Bool { FileDescriptor.standardInput.isTerminal }

    static func read() throws(CommandFailure) -> Data {
        isInteractive ? try prompt() : try readStandardInput()
    }

    private static func readStandardInput() throws(CommandFailure) -> Data {
        var bytes: [UInt8]?
        do throws(Errno) {
            bytes = try FileDescriptor.standardInput.readToEnd(byteLimit: maximumByteCount)
        } catch {
            throw CommandFailure(
                .usage, "cannot read standard input: \(error)",
                advice: "Nothing was stored. Pipe the secret to `valet set`, or run it in a terminal."
            )
        }
        defer { bytes?.wipe() }
        guard let secret = bytes.map({ Data($0) }) else {
            throw CommandFailure(
                .usage, "the secret is larger than \(maximumByteCount >> 20) MiB; nothing was stored",
                advice: "Store large files elsewhere, encrypted, and their key in the keychain."
            )
        }
        return secret
    }

    private static func prompt() throws(CommandFailure) -> Data {
        var secret = try CommandPrompt.readWithoutEcho(prompt: "Secret: ")
        var again = try CommandPrompt.readWithoutEcho(prompt: "Again:  ")
        defer {
            secret.wipe()
            again.wipe()
        }
        guard secret == again else {
            throw CommandFailure(.usage, "the two entries do not match; nothing was stored", advice: "Run the command again.")
        }
        return Data(secret)
    }
}
