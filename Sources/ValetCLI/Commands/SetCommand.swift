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
    var selection: ValetOptions

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        // Before anybody is asked for a secret that cannot be stored.
        guard !key.isEmpty else { throw CommandFailure(.emptyKey, because: nil) }
        if SecretInput.isInteractive { try session.requireUnlocked(for: selected.accessibility) }
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

/// Where `valet set` takes the secret from: standard input as it is, or the person at the terminal, twice and without echo.
enum SecretInput {
    /// A secret is small.
    ///
    /// The limit keeps an endless input from filling the memory.
    private static let maximumByteCount = 64 << 20

    static var isInteractive: Bool { FileDescriptor.standardInput.isTerminal }

    static func read() throws(CommandFailure) -> Data {
        isInteractive ? try ask() : try readStandardInput()
    }

    private static func readStandardInput() throws(CommandFailure) -> Data {
        var bytes: [UInt8]?
        do throws(Errno) {
            bytes = try FileDescriptor.standardInput.readToEnd(byteLimit: maximumByteCount)
        } catch {
            throw CommandFailure(
                .usage, "standard input cannot be read: \(error)",
                advice: "Nothing was stored. Give the secret through a pipe, or run `valet set` on a terminal."
            )
        }
        defer { bytes?.wipe() }
        guard let secret = bytes.map({ Data($0) }) else {
            throw CommandFailure(
                .usage, "the secret is larger than \(maximumByteCount >> 20) MiB, and nothing was stored",
                advice: "Keep large files elsewhere, encrypted, and store their key here."
            )
        }
        return secret
    }

    private static func ask() throws(CommandFailure) -> Data {
        var secret = try TerminalPrompt.readWithoutEcho(prompt: "Secret: ")
        var again = try TerminalPrompt.readWithoutEcho(prompt: "Again:  ")
        defer {
            secret.wipe()
            again.wipe()
        }
        guard secret == again else {
            throw CommandFailure(.usage, "the two entries differ, and nothing was stored", advice: "Run the command again.")
        }
        return Data(secret)
    }
}
