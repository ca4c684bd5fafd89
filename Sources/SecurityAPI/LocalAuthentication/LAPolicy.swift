// SPDX-License-Identifier: Apache-2.0

/// What a person is to prove (Apple: LAPolicy).
///
/// Here somebody proves to be there with the passcode. There is no biometry and no companion device, so a policy that needs one of
/// them is refused, and one that could do with either is too.
public enum LAPolicy: Int, Sendable {
    /// Biometry, and nothing else.
    ///
    /// Refused with `LAError.biometryNotAvailable`.
    case deviceOwnerAuthenticationWithBiometrics = 1
    /// Biometry or the passcode: here the passcode.
    case deviceOwnerAuthentication = 2
    /// A device of the person's nearby.
    ///
    /// Refused with `LAError.companionNotAvailable`.
    case deviceOwnerAuthenticationWithCompanion = 3
    /// Biometry or a device of the person's nearby.
    ///
    /// Refused with `LAError.biometryNotAvailable`.
    case deviceOwnerAuthenticationWithBiometricsOrCompanion = 4

    /// The older name of ``deviceOwnerAuthenticationWithCompanion``.
    public static let deviceOwnerAuthenticationWithWatch = deviceOwnerAuthenticationWithCompanion
    /// The older name of ``deviceOwnerAuthenticationWithBiometricsOrCompanion``.
    public static let deviceOwnerAuthenticationWithBiometricsOrWatch = deviceOwnerAuthenticationWithBiometricsOrCompanion
}
