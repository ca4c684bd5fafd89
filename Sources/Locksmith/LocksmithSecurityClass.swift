// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalised names are those of Locksmith for Swift 2.

internal import KeychainServices

/// What sort of item something is.
///
/// Source: Apple, "Item Class Values".
public enum LocksmithSecurityClass: RawRepresentable, CaseIterable, Hashable, Sendable {
    /// A generic password.
    case genericPassword
    /// An internet password.
    case internetPassword
    /// A certificate; not supported.
    case certificate
    /// A cryptographic key; not supported.
    case key
    /// A certificate with its private key; not supported.
    case identity

    /// The value of `kSecClass`.
    public var rawValue: String {
        switch self {
        case .genericPassword: kSecClassGenericPassword as String
        case .internetPassword: kSecClassInternetPassword as String
        case .certificate: kSecClassCertificate as String
        case .key: kSecClassKey as String
        case .identity: kSecClassIdentity as String
        }
    }

    /// The case with a raw value.
    ///
    /// - Parameter rawValue: As in items of the keychain; nil is made of any other.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }
}

/// The spellings of Swift 2.
extension LocksmithSecurityClass {
    /// The same as `genericPassword`.
    public static let GenericPassword = Self.genericPassword
    /// The same as `internetPassword`.
    public static let InternetPassword = Self.internetPassword
    /// The same as `certificate`.
    public static let Certificate = Self.certificate
    /// The same as `key`.
    public static let Key = Self.key
    /// The same as `identity`.
    public static let Identity = Self.identity
}
