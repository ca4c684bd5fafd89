// SPDX-License-Identifier: Apache-2.0

/// A Secure Enclave valet in place of a plain one.
struct EnclaveSelection: Equatable {
    let option: SecureEnclaveOption
    /// Whether one answer serves the whole command.
    let isSinglePrompt: Bool

    /// Nil: a plain valet is meant.
    ///
    /// The names are those of the two options, for messages.
    init?(_ option: SecureEnclaveOption?, isSinglePrompt: Bool, names: (enclave: String, singlePrompt: String)) throws(CommandFailure) {
        guard let option else {
            if isSinglePrompt {
                throw CommandFailure(
                    .usage, "\(names.singlePrompt) goes with \(names.enclave)",
                    advice: "Add \(names.enclave) user-presence, or leave out \(names.singlePrompt).")
            }
            return nil
        }
        try option.requirePossible()
        self.option = option
        self.isSinglePrompt = isSinglePrompt
    }
}
