// SPDX-License-Identifier: Apache-2.0

// The values of `kSecAttrProtocol`. Each is four bytes, padded with blanks.

/// A value of `kSecAttrProtocol`: FTP.
public let kSecAttrProtocolFTP: CFString = "ftp "
/// A value of `kSecAttrProtocol`: an FTP account, on the side of the client.
public let kSecAttrProtocolFTPAccount: CFString = "ftpa"
/// A value of `kSecAttrProtocol`: HTTP.
public let kSecAttrProtocolHTTP: CFString = "http"
/// A value of `kSecAttrProtocol`: IRC.
public let kSecAttrProtocolIRC: CFString = "irc "
/// A value of `kSecAttrProtocol`: NNTP.
public let kSecAttrProtocolNNTP: CFString = "nntp"
/// A value of `kSecAttrProtocol`: POP3.
public let kSecAttrProtocolPOP3: CFString = "pop3"
/// A value of `kSecAttrProtocol`: SMTP.
public let kSecAttrProtocolSMTP: CFString = "smtp"
/// A value of `kSecAttrProtocol`: a SOCKS proxy.
public let kSecAttrProtocolSOCKS: CFString = "sox "
/// A value of `kSecAttrProtocol`: IMAP.
public let kSecAttrProtocolIMAP: CFString = "imap"
/// A value of `kSecAttrProtocol`: LDAP.
public let kSecAttrProtocolLDAP: CFString = "ldap"
/// A value of `kSecAttrProtocol`: AFP over AppleTalk.
public let kSecAttrProtocolAppleTalk: CFString = "atlk"
/// A value of `kSecAttrProtocol`: AFP over TCP.
public let kSecAttrProtocolAFP: CFString = "afp "
/// A value of `kSecAttrProtocol`: Telnet.
public let kSecAttrProtocolTelnet: CFString = "teln"
/// A value of `kSecAttrProtocol`: SSH.
public let kSecAttrProtocolSSH: CFString = "ssh "
/// A value of `kSecAttrProtocol`: FTP over TLS.
public let kSecAttrProtocolFTPS: CFString = "ftps"
/// A value of `kSecAttrProtocol`: HTTP over TLS.
public let kSecAttrProtocolHTTPS: CFString = "htps"
/// A value of `kSecAttrProtocol`: an HTTP proxy.
public let kSecAttrProtocolHTTPProxy: CFString = "htpx"
/// A value of `kSecAttrProtocol`: an HTTPS proxy.
public let kSecAttrProtocolHTTPSProxy: CFString = "htsx"
/// A value of `kSecAttrProtocol`: an FTP proxy.
public let kSecAttrProtocolFTPProxy: CFString = "ftpx"
/// A value of `kSecAttrProtocol`: SMB.
public let kSecAttrProtocolSMB: CFString = "smb "
/// A value of `kSecAttrProtocol`: RTSP.
public let kSecAttrProtocolRTSP: CFString = "rtsp"
/// A value of `kSecAttrProtocol`: an RTSP proxy.
public let kSecAttrProtocolRTSPProxy: CFString = "rtsx"
/// A value of `kSecAttrProtocol`: DAAP.
public let kSecAttrProtocolDAAP: CFString = "daap"
/// A value of `kSecAttrProtocol`: remote Apple events.
public let kSecAttrProtocolEPPC: CFString = "eppc"
/// A value of `kSecAttrProtocol`: IPP.
public let kSecAttrProtocolIPP: CFString = "ipp "
/// A value of `kSecAttrProtocol`: NNTP over TLS.
public let kSecAttrProtocolNNTPS: CFString = "ntps"
/// A value of `kSecAttrProtocol`: LDAP over TLS.
public let kSecAttrProtocolLDAPS: CFString = "ldps"
/// A value of `kSecAttrProtocol`: Telnet over TLS.
public let kSecAttrProtocolTelnetS: CFString = "tels"
/// A value of `kSecAttrProtocol`: IMAP over TLS.
public let kSecAttrProtocolIMAPS: CFString = "imps"
/// A value of `kSecAttrProtocol`: IRC over TLS.
public let kSecAttrProtocolIRCS: CFString = "ircs"
/// A value of `kSecAttrProtocol`: POP3 over TLS.
public let kSecAttrProtocolPOP3S: CFString = "pops"

// The values of `kSecAttrAuthenticationType`.

/// A value of `kSecAttrAuthenticationType`: Windows NT LAN Manager.
public let kSecAttrAuthenticationTypeNTLM: CFString = "ntlm"
/// A value of `kSecAttrAuthenticationType`: Microsoft Network.
public let kSecAttrAuthenticationTypeMSN: CFString = "msna"
/// A value of `kSecAttrAuthenticationType`: distributed password authentication.
public let kSecAttrAuthenticationTypeDPA: CFString = "dpaa"
/// A value of `kSecAttrAuthenticationType`: remote password authentication.
public let kSecAttrAuthenticationTypeRPA: CFString = "rpaa"
/// A value of `kSecAttrAuthenticationType`: HTTP Basic (RFC 7617).
public let kSecAttrAuthenticationTypeHTTPBasic: CFString = "http"
/// A value of `kSecAttrAuthenticationType`: HTTP Digest (RFC 7616).
public let kSecAttrAuthenticationTypeHTTPDigest: CFString = "httd"
/// A value of `kSecAttrAuthenticationType`: a form on a page.
public let kSecAttrAuthenticationTypeHTMLForm: CFString = "form"
/// A value of `kSecAttrAuthenticationType`: whatever the server uses by default.
public let kSecAttrAuthenticationTypeDefault: CFString = "dflt"
