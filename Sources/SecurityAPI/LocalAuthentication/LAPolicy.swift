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

/// What is to be done with what an access control object protects (Apple: LAAccessControlOperation).
public enum LAAccessControlOperation: Int, Sendable {
    /// Adding an item.
    case createItem = 0
    /// Reading or changing an item.
    case useItem = 1
    /// Making a key.
    ///
    /// This keychain has no keys: refused.
    case createKey = 2
    /// Signing with a key: refused, as for `createKey`.
    case useKeySign = 3
    /// Decrypting with a key: refused, as for `createKey`.
    case useKeyDecrypt = 4
    /// Agreeing on a key: refused, as for `createKey`.
    case useKeyKeyExchange = 5
}

/// The kind of biometry a device has (Apple: LABiometryType).
public enum LABiometryType: Int, Sendable {
    /// None: the only value there is here.
    case none = 0
    /// A fingerprint sensor of Apple's.
    case touchID = 1
    /// Face recognition of Apple's.
    case faceID = 2
    /// Iris recognition of Apple's.
    case opticID = 4
}

/// What a program can give an `LAContext` in place of a person's answer (Apple: LACredentialType).
public enum LACredentialType: Int, Sendable {
    /// The program's own password, for access control with `SecAccessControlCreateFlags.applicationPassword`.
    case applicationPassword = 0
    /// The PIN of a smart card.
    ///
    /// Not taken: there are no smart cards here.
    case smartCardPIN = -3
}
