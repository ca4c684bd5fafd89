// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainServices
import Valet

/// The kind of authentication that an item requires, as on the command line.
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

    /// Throws if this platform does not support the authentication, so that the items could never be read.
    func requireSupported() throws(CommandFailure) {
        switch self {
        case .userPresence, .devicePasscode: return
        case .biometricAny, .biometricCurrentSet:
            guard LAContext().biometryType != .none else { throw CommandFailure.noBiometry }
        }
    }
}

/// The options that select a Secure Enclave valet.
struct SecureEnclaveSelection: Equatable {
    let option: SecureEnclaveOption
    /// Whether the person authenticates once for the whole command.
    let isSinglePrompt: Bool

    /// Creates the selection; nil if the options select a plain valet.
    ///
    /// `names` are the names of the two options in messages.
    init?(_ option: SecureEnclaveOption?, isSinglePrompt: Bool, names: (enclave: String, singlePrompt: String)) throws(CommandFailure) {
        guard let option else {
            if isSinglePrompt {
                throw CommandFailure(
                    .usage, "\(names.singlePrompt) requires \(names.enclave)",
                    advice: "Add \(names.enclave) user-presence, or omit \(names.singlePrompt).")
            }
            return nil
        }
        try option.requireSupported()
        self.option = option
        self.isSinglePrompt = isSinglePrompt
    }
}

/// The option for the reason in the authentication prompt.
struct ReasonOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The reason shown in the authentication prompt. Only with --secure-enclave.", valueName: "text"))
    var reason: String?

    /// The reason; empty without the option.
    func text(for selected: SelectedValet) throws(CommandFailure) -> String {
        guard let reason else { return "" }
        guard selected.requiresAuthentication else {
            throw CommandFailure(
                .usage, "--reason has no effect: reading this valet does not require authentication",
                advice: "Omit --reason, or add --secure-enclave.")
        }
        return reason
    }
}
