// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalised names are those of Locksmith for Swift 2.

internal import KeychainServices

/// How a server lets people authenticate, as an internet password says it.
///
/// Source: Apple, "Authentication Type Values".
public enum LocksmithInternetAuthenticationType: RawRepresentable, CaseIterable, Hashable, Sendable {
    /// The default of the protocol.
    case `default`
    /// Distributed password authentication.
    case dpa
    /// A form on a page.
    case htmlForm
    /// Basic authentication of HTTP.
    case httpBasic
    /// Digest authentication of HTTP.
    case httpDigest
    /// Microsoft Network default.
    case msn
    /// Windows NT LAN Manager.
    case ntlm
    /// Remote password authentication.
    case rpa

    /// The value of the `kSecAttrAuthenticationType` attribute.
    public var rawValue: String {
        switch self {
        case .default: kSecAttrAuthenticationTypeDefault as String
        case .dpa: kSecAttrAuthenticationTypeDPA as String
        case .htmlForm: kSecAttrAuthenticationTypeHTMLForm as String
        case .httpBasic: kSecAttrAuthenticationTypeHTTPBasic as String
        case .httpDigest: kSecAttrAuthenticationTypeHTTPDigest as String
        case .msn: kSecAttrAuthenticationTypeMSN as String
        case .ntlm: kSecAttrAuthenticationTypeNTLM as String
        case .rpa: kSecAttrAuthenticationTypeRPA as String
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
extension LocksmithInternetAuthenticationType {
    /// The same as `default`.
    public static let Default = Self.default
    /// The same as `dpa`.
    public static let DPA = Self.dpa
    /// The same as `htmlForm`.
    public static let HTMLForm = Self.htmlForm
    /// The same as `httpBasic`.
    public static let HTTPBasic = Self.httpBasic
    /// The same as `httpDigest`.
    public static let HTTPDigest = Self.httpDigest
    /// The same as `msn`.
    public static let MSN = Self.msn
    /// The same as `ntlm`.
    public static let NTLM = Self.ntlm
    /// The same as `rpa`.
    public static let RPA = Self.rpa
}
