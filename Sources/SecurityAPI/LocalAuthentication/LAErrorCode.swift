// SPDX-License-Identifier: Apache-2.0

extension LAError {
    /// The codes (Apple: LAError.h).
    public enum Code: Int, Sendable {
        /// Authentication failed: the passcode or password was wrong too often, or another error occurred that has no code of its own.
        case authenticationFailed = -1
        /// The user canceled the prompt.
        case userCancel = -2
        /// The user chose the fallback.
        ///
        /// Never occurs on this platform: prompts ask for the passcode directly.
        case userFallback = -3
        /// The prompt timed out.
        case systemCancel = -4
        /// No passcode is set, so the user cannot authenticate.
        case passcodeNotSet = -5
        /// This platform has no biometry.
        case biometryNotAvailable = -6
        /// No fingerprint or face is enrolled.
        ///
        /// Never occurs on this platform.
        case biometryNotEnrolled = -7
        /// Too many wrong answers; the next attempt must wait.
        case biometryLockout = -8
        /// The program invalidated the context during the prompt.
        case appCancel = -9
        /// The context was invalidated before.
        case invalidContext = -10
        /// This platform has no companion devices.
        case companionNotAvailable = -11
        /// The biometric accessory is not paired.
        ///
        /// Never occurs on this platform.
        case biometryNotPaired = -12
        /// The biometric accessory is not connected.
        ///
        /// Never occurs on this platform.
        case biometryDisconnected = -13
        /// Dimensions that make no sense.
        ///
        /// Never occurs on this platform.
        case invalidDimensions = -14
        /// Prompts are forbidden or cannot be shown, because there is no terminal and no display.
        case notInteractive = -1004

        /// The older name of `companionNotAvailable`.
        public static let watchNotAvailable = companionNotAvailable

        /// Returns whether `error` is an `LAError` with this code; `catch LAError.userCancel` calls it.
        ///
        /// - Parameters:
        ///   - code: The code.
        ///   - error: Any error.
        /// - Returns: Whether it has the code.
        public static func ~= (code: Code, error: any Error) -> Bool { (error as? LAError)?.code == code }
    }

    /// See ``Code/authenticationFailed``.
    public static var authenticationFailed: Code { .authenticationFailed }
    /// See ``Code/userCancel``.
    public static var userCancel: Code { .userCancel }
    /// See ``Code/userFallback``.
    public static var userFallback: Code { .userFallback }
    /// See ``Code/systemCancel``.
    public static var systemCancel: Code { .systemCancel }
    /// See ``Code/passcodeNotSet``.
    public static var passcodeNotSet: Code { .passcodeNotSet }
    /// See ``Code/biometryNotAvailable``.
    public static var biometryNotAvailable: Code { .biometryNotAvailable }
    /// See ``Code/biometryNotEnrolled``.
    public static var biometryNotEnrolled: Code { .biometryNotEnrolled }
    /// See ``Code/biometryLockout``.
    public static var biometryLockout: Code { .biometryLockout }
    /// The older name of ``biometryNotAvailable``.
    public static var touchIDNotAvailable: Code { .biometryNotAvailable }
    /// The older name of ``biometryNotEnrolled``.
    public static var touchIDNotEnrolled: Code { .biometryNotEnrolled }
    /// The older name of ``biometryLockout``.
    public static var touchIDLockout: Code { .biometryLockout }
    /// See ``Code/appCancel``.
    public static var appCancel: Code { .appCancel }
    /// See ``Code/invalidContext``.
    public static var invalidContext: Code { .invalidContext }
    /// See ``Code/companionNotAvailable``.
    public static var companionNotAvailable: Code { .companionNotAvailable }
    /// The older name of ``companionNotAvailable``.
    public static var watchNotAvailable: Code { .companionNotAvailable }
    /// See ``Code/biometryNotPaired``.
    public static var biometryNotPaired: Code { .biometryNotPaired }
    /// See ``Code/biometryDisconnected``.
    public static var biometryDisconnected: Code { .biometryDisconnected }
    /// See ``Code/invalidDimensions``.
    public static var invalidDimensions: Code { .invalidDimensions }
    /// See ``Code/notInteractive``.
    public static var notInteractive: Code { .notInteractive }
}

extension LAError.Code {
    /// A description for people.
    var message: String {
        switch self {
        case .authenticationFailed: "Authentication failed."
        case .userCancel: "The user canceled the prompt."
        case .userFallback: "The user chose the fallback."
        case .systemCancel: "The prompt timed out."
        case .passcodeNotSet: "No passcode is set."
        case .biometryNotAvailable: "Biometry is not available."
        case .biometryNotEnrolled: "No fingerprint or face is enrolled."
        case .biometryLockout: "Too many wrong answers; the next attempt must wait."
        case .appCancel: "The program invalidated the context."
        case .invalidContext: "The context is invalid."
        case .companionNotAvailable: "No companion device is available."
        case .biometryNotPaired: "The biometric accessory is not paired."
        case .biometryDisconnected: "The biometric accessory is not connected."
        case .invalidDimensions: "The dimensions are not valid."
        case .notInteractive: "Prompts are forbidden or cannot be shown."
        }
    }
}
