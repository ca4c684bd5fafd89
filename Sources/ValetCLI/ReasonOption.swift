// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// The option that tells the person who is asked what for.
struct ReasonOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("What the person who has to release the secret is told. Goes with a Secure Enclave valet.", valueName: "text"))
    var reason: String?

    /// The words; none where nothing was said.
    func text(for selected: SelectedValet) throws(CommandFailure) -> String {
        guard let reason else { return "" }
        guard selected.valet.asks else {
            throw CommandFailure(
                .usage, "nobody is asked for the items of this valet, so there is nobody to tell a reason",
                advice: "Leave out --reason, or add --secure-enclave.")
        }
        return reason
    }
}
