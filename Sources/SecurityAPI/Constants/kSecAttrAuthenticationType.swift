// SPDX-License-Identifier: Apache-2.0

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
