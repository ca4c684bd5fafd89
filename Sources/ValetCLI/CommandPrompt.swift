// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainSystem

/// Questions to the person at the terminal.
///
/// Ask only if standard input is a terminal; a script gets an error that names the option to give. The question appears on the controlling
/// terminal, because standard output may be a file. The command fails if no key is pressed for five minutes.
enum CommandPrompt {
    private static let idleSeconds: UInt32 = 5 * 60
    private static let byteLimit = 64 << 10

    /// Reads one line without echo; the caller wipes it.
    static func readWithoutEcho(prompt: String) throws(CommandFailure) -> [UInt8] {
        try read(prompt: prompt, echo: false)
    }

    /// Returns whether the person answers yes; every other answer is no.
    static func confirm(_ question: String) throws(CommandFailure) -> Bool {
        let answer = try read(prompt: question + " [y/N] ", echo: true)
        return ["y", "yes"].contains(String(decoding: answer, as: UTF8.self).lowercased())
    }

    private static func read(prompt: String, echo: Bool) throws(CommandFailure) -> [UInt8] {
        do throws(TerminalFailure) {
            return try Terminal(fallingBackToStandardInput: ()).dialog(
                echo: echo, interrupt: .raisesSignal, timeout: .idleSeconds(idleSeconds)
            ) { (dialog) throws(TerminalFailure) in try dialog.readLine(prompt: prompt, byteLimit: byteLimit) }
        } catch .lineTooLong {
            throw CommandFailure(
                .usage, "the input is longer than a prompt accepts (64 KiB); nothing was changed",
                advice: "Pipe the secret to `valet set`, or use a file descriptor for a passcode.")
        } catch {
            throw CommandFailure(
                .unavailable, "no answer on the terminal; nothing was changed", advice: "Run the command again.")
        }
    }
}
