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
