// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalized names are those of Locksmith for Swift 2.

internal import KeychainServices

/// The protocol of the server of an internet password.
///
/// Source: Apple, "Protocol Values".
public enum LocksmithInternetProtocol: RawRepresentable, CaseIterable, Hashable, Sendable {
    /// AFP over TCP.
    case afp
    /// AFP over AppleTalk.
    case appleTalk
    /// Digital Audio Access Protocol.
    case daap
    /// Remote Apple Events.
    case eppc
    /// FTP.
    case ftp
    /// An account on an FTP server.
    case ftpAccount
    /// A proxy for FTP.
    case ftpProxy
    /// FTP over TLS.
    case ftps
    /// HTTP.
    case http
    /// A proxy for HTTP.
    case httpProxy
    /// HTTP over TLS.
    case https
    /// A proxy for HTTP over TLS.
    case httpsProxy
    /// IMAP.
    case imap
    /// IMAP over TLS.
    case imaps
    /// Internet Printing Protocol.
    case ipp
    /// IRC.
    case irc
    /// IRC over TLS.
    case ircs
    /// LDAP.
    case ldap
    /// LDAP over TLS.
    case ldaps
    /// NNTP.
    case nntp
    /// NNTP over TLS.
    case nntps
    /// POP3.
    case pop3
    /// POP3 over TLS.
    case pop3S
    /// RTSP.
    case rtsp
    /// A proxy for RTSP.
    case rtspProxy
    /// SMB.
    case smb
    /// SMTP.
    case smtp
    /// A SOCKS proxy.
    case socks
    /// SSH.
    case ssh
    /// Telnet.
    case telnet
    /// Telnet over TLS.
    case telnetS

    /// The value of the `kSecAttrProtocol` attribute.
    public var rawValue: String {
        switch self {
        case .afp: kSecAttrProtocolAFP as String
        case .appleTalk: kSecAttrProtocolAppleTalk as String
        case .daap: kSecAttrProtocolDAAP as String
        case .eppc: kSecAttrProtocolEPPC as String
        case .ftp: kSecAttrProtocolFTP as String
        case .ftpAccount: kSecAttrProtocolFTPAccount as String
        case .ftpProxy: kSecAttrProtocolFTPProxy as String
        case .ftps: kSecAttrProtocolFTPS as String
        case .http: kSecAttrProtocolHTTP as String
        case .httpProxy: kSecAttrProtocolHTTPProxy as String
        case .https: kSecAttrProtocolHTTPS as String
        case .httpsProxy: kSecAttrProtocolHTTPSProxy as String
        case .imap: kSecAttrProtocolIMAP as String
        case .imaps: kSecAttrProtocolIMAPS as String
        case .ipp: kSecAttrProtocolIPP as String
        case .irc: kSecAttrProtocolIRC as String
        case .ircs: kSecAttrProtocolIRCS as String
        case .ldap: kSecAttrProtocolLDAP as String
        case .ldaps: kSecAttrProtocolLDAPS as String
        case .nntp: kSecAttrProtocolNNTP as String
        case .nntps: kSecAttrProtocolNNTPS as String
        case .pop3: kSecAttrProtocolPOP3 as String
        case .pop3S: kSecAttrProtocolPOP3S as String
        case .rtsp: kSecAttrProtocolRTSP as String
        case .rtspProxy: kSecAttrProtocolRTSPProxy as String
        case .smb: kSecAttrProtocolSMB as String
        case .smtp: kSecAttrProtocolSMTP as String
        case .socks: kSecAttrProtocolSOCKS as String
        case .ssh: kSecAttrProtocolSSH as String
        case .telnet: kSecAttrProtocolTelnet as String
        case .telnetS: kSecAttrProtocolTelnetS as String
        }
    }

    /// Creates the case with a raw value.
    ///
    /// - Parameter rawValue: The value in items of the keychain. For any other value the initializer returns nil.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }
}

/// The spellings of Swift 2.
extension LocksmithInternetProtocol {
    /// The same as `afp`.
    public static let AFP = Self.afp
    /// The same as `appleTalk`.
    public static let AppleTalk = Self.appleTalk
    /// The same as `daap`.
    public static let DAAP = Self.daap
    /// The same as `eppc`.
    public static let EPPC = Self.eppc
    /// The same as `ftp`.
    public static let FTP = Self.ftp
    /// The same as `ftpAccount`.
    public static let FTPAccount = Self.ftpAccount
    /// The same as `ftpProxy`.
    public static let FTPProxy = Self.ftpProxy
    /// The same as `ftps`.
    public static let FTPS = Self.ftps
    /// The same as `http`.
    public static let HTTP = Self.http
    /// The same as `httpProxy`.
    public static let HTTPProxy = Self.httpProxy
    /// The same as `https`.
    public static let HTTPS = Self.https
    /// The same as `httpsProxy`.
    public static let HTTPSProxy = Self.httpsProxy
    /// The same as `imap`.
    public static let IMAP = Self.imap
    /// The same as `imaps`.
    public static let IMAPS = Self.imaps
    /// The same as `ipp`.
    public static let IPP = Self.ipp
    /// The same as `irc`.
    public static let IRC = Self.irc
    /// The same as `ircs`.
    public static let IRCS = Self.ircs
    /// The same as `ldap`.
    public static let LDAP = Self.ldap
    /// The same as `ldaps`.
    public static let LDAPS = Self.ldaps
    /// The same as `nntp`.
    public static let NNTP = Self.nntp
    /// The same as `nntps`.
    public static let NNTPS = Self.nntps
    /// The same as `pop3`.
    public static let POP3 = Self.pop3
    /// The same as `pop3S`.
    public static let POP3S = Self.pop3S
    /// The same as `rtsp`.
    public static let RTSP = Self.rtsp
    /// The same as `rtspProxy`.
    public static let RTSPProxy = Self.rtspProxy
    /// The same as `smb`.
    public static let SMB = Self.smb
    /// The same as `smtp`.
    public static let SMTP = Self.smtp
    /// The same as `socks`.
    public static let SOCKS = Self.socks
    /// The same as `ssh`.
    public static let SSH = Self.ssh
    /// The same as `telnet`.
    public static let Telnet = Self.telnet
    /// The same as `telnetS`.
    public static let TelnetS = Self.telnetS
}

/// The authentication type of the server of an internet password.
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

    /// Creates the case with a raw value.
    ///
    /// - Parameter rawValue: The value in items of the keychain. For any other value the initializer returns nil.
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
