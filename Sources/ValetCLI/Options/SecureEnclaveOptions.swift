// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainServices
import Valet

/// What a person must do to release an item, as it is written on the command line.
enum SecureEnclaveOption: String, CaseIterable, ExpressibleByArgument {
    case userPresence = "user-presence"
    case devicePasscode = "device-passcode"
    case biometricAny = "biometric-any"
    case biometricCurrentSet = "biometric-current-set"

    var accessControl: SecureEnclaveAccessControl {
        switch self {
        case .userPresence: .userPresence
        case .devicePasscode: .devicePasscode
        case .biometricAny: .biometricAny
        case .biometricCurrentSet: .biometricCurrentSet
        }
    }

    /// Throws where nothing could ever release the items.
    func requirePossible() throws(CommandFailure) {
        switch self {
        case .userPresence, .devicePasscode: return
        case .biometricAny, .biometricCurrentSet:
            guard LAContext().biometryType != .none else { throw CommandFailure.noBiometry }
        }
    }
}

/// A Secure Enclave valet in place of a plain one.
struct SecureEnclaveSelection: Equatable {
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
