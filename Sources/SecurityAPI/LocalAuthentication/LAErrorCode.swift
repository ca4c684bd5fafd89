// SPDX-License-Identifier: Apache-2.0

extension LAError {
    /// The codes (Apple: LAError.h).
    public enum Code: Int, Sendable {
        /// The person, or the program, did not give what was asked for: a wrong passcode, as often as it may be; or something stood in
        /// the way that has no code of its own.
        case authenticationFailed = -1
        /// The person cancelled.
        case userCancel = -2
        /// The person chose the fallback.
        ///
        /// Never given here: the passcode is asked for at once.
        case userFallback = -3
        /// The question was withdrawn, as nobody answered in time.
        case systemCancel = -4
        /// No passcode is set, so nobody can prove to be there.
        case passcodeNotSet = -5
        /// There is no biometry here.
        case biometryNotAvailable = -6
        /// Nobody has enrolled for biometry.
        ///
        /// Never given here.
        case biometryNotEnrolled = -7
        /// After many wrong answers the next has to wait.
        case biometryLockout = -8
        /// The program invalidated the context while the person was asked.
        case appCancel = -9
        /// The context was invalidated before.
        case invalidContext = -10
        /// There is no companion device here.
        case companionNotAvailable = -11
        /// The biometric accessory is not paired.
        ///
        /// Never given here.
        case biometryNotPaired = -12
        /// The biometric accessory is not connected.
        ///
        /// Never given here.
        case biometryDisconnected = -13
        /// Dimensions that make no sense.
        ///
        /// Never given here.
        case invalidDimensions = -14
        /// Nobody may be asked, or there is nobody to ask: no terminal, no display.
        case notInteractive = -1004

        /// The older name of `companionNotAvailable`.
        public static let watchNotAvailable = companionNotAvailable

        /// Whether `error` is an `LAError` with this code: what `catch LAError.userCancel` asks.
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
    /// A sentence for a person to read.
    var message: String {
        switch self {
        case .authenticationFailed: "Nobody was authenticated."
        case .userCancel: "The person cancelled."
        case .userFallback: "The person chose the fallback."
        case .systemCancel: "Nobody answered in time."
        case .passcodeNotSet: "No passcode is set."
        case .biometryNotAvailable: "There is no biometry here."
        case .biometryNotEnrolled: "Nobody has enrolled for biometry."
        case .biometryLockout: "After many wrong answers the next has to wait."
        case .appCancel: "The program invalidated the context."
        case .invalidContext: "The context was invalidated before."
        case .companionNotAvailable: "There is no companion device here."
        case .biometryNotPaired: "The biometric accessory is not paired."
        case .biometryDisconnected: "The biometric accessory is not connected."
        case .invalidDimensions: "The dimensions make no sense."
        case .notInteractive: "Nobody may be asked, or there is nobody to ask."
        }
    }
}
