// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// Arguments that a command does not have: what people type at first where a secret is prompted for.
///
/// The error must not repeat them, as the parser's would, even if they look like an option.
struct SecretArguments: ParsableArguments {
    @Argument(parsing: .allUnrecognized, help: .hidden)
    var values: [String] = []

    /// Throws if there are such arguments.
    func requireNone(outcome: String, advice: String) throws(CommandFailure) {
        guard !values.isEmpty else { return }
        let isOption = values.contains { $0.hasPrefix("-") }
        throw CommandFailure(
            .usage,
            isOption
                ? "an argument is not an option of this command, and a secret is never an argument; \(outcome)"
                : "a secret is never an argument, because other users and the history of the shell could see it; \(outcome)",
            advice: (isOption ? "`valet help` with the name of the command lists its options. " : "") + advice)
    }

    /// Throws if there are such arguments, for a command that prompts for a passcode.
    func requireNone() throws(CommandFailure) {
        try requireNone(outcome: "nothing was changed", advice: "Omit it to be prompted, or pass it through a file descriptor.")
    }
}
