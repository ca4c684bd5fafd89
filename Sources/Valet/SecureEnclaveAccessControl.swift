// SPDX-License-Identifier: Apache-2.0

/// What a person must do before a value of a Secure Enclave valet can be read.
///
/// All of them need a passcode to be set.
public enum SecureEnclaveAccessControl: Int, Sendable {
    /// Show that they are there: by any enrolled finger or face, or by the passcode.
    case userPresence = 1
    /// Show any finger or face that is enrolled when the value is read.
    case biometricAny
    /// Show a finger or face that was enrolled when the value was stored: enrolling another one makes the value unreadable.
    case biometricCurrentSet
    /// Type the passcode.
    case devicePasscode
}
