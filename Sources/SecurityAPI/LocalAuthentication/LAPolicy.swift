// SPDX-License-Identifier: Apache-2.0

/// The authentication that an evaluation requires (Apple: LAPolicy).
///
/// On this platform the user authenticates with the passcode. Policies that require biometry, a companion device, or either of the two are
/// rejected, because this platform has neither.
public enum LAPolicy: Int, Sendable {
    /// Biometry, and nothing else.
    ///
    /// Rejected with `LAError.biometryNotAvailable`.
    case deviceOwnerAuthenticationWithBiometrics = 1
    /// Biometry or the passcode; on this platform the passcode.
    case deviceOwnerAuthentication = 2
    /// A companion device nearby.
    ///
    /// Rejected with `LAError.companionNotAvailable`.
    case deviceOwnerAuthenticationWithCompanion = 3
    /// Biometry or a companion device nearby.
    ///
    /// Rejected with `LAError.biometryNotAvailable`.
    case deviceOwnerAuthenticationWithBiometricsOrCompanion = 4

    /// The older name of ``deviceOwnerAuthenticationWithCompanion``.
    public static let deviceOwnerAuthenticationWithWatch = deviceOwnerAuthenticationWithCompanion
    /// The older name of ``deviceOwnerAuthenticationWithBiometricsOrCompanion``.
    public static let deviceOwnerAuthenticationWithBiometricsOrWatch = deviceOwnerAuthenticationWithBiometricsOrCompanion
}

/// The operation on an item that an access control object protects (Apple: LAAccessControlOperation).
public enum LAAccessControlOperation: Int, Sendable {
    /// Adding an item.
    case createItem = 0
    /// Reading or changing an item.
    case useItem = 1
    /// Creating a key.
    ///
    /// Rejected: this keychain has no keys.
    case createKey = 2
    /// Signing with a key. Rejected: this keychain has no keys.
    case useKeySign = 3
    /// Decrypting with a key. Rejected: this keychain has no keys.
    case useKeyDecrypt = 4
    /// Agreeing on a key. Rejected: this keychain has no keys.
    case useKeyKeyExchange = 5
}

/// The kind of biometry a device has (Apple: LABiometryType).
public enum LABiometryType: Int, Sendable {
    /// No biometry: the only value on this platform.
    case none = 0
    /// A fingerprint sensor of Apple's.
    case touchID = 1
    /// Face recognition of Apple's.
    case faceID = 2
    /// Iris recognition of Apple's.
    case opticID = 4
}

/// The type of a credential that a program can set in an `LAContext` (Apple: LACredentialType).
public enum LACredentialType: Int, Sendable {
    /// The program's own password, for access control with `SecAccessControlCreateFlags.applicationPassword`.
    case applicationPassword = 0
    /// The PIN of a smart card.
    ///
    /// Not accepted: this platform has no smart cards.
    case smartCardPIN = -3
}
