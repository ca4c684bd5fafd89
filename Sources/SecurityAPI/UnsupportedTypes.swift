// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation

// Certificates, keys, and identities are not supported. Their types exist so that code which mentions them compiles. No value of these
// types exists: every cast to one fails, and no function returns one.

/// A cryptographic key (Apple: SecKey).
///
/// No value exists: keys are not supported.
public final class SecKey: NSObject, Sendable {
    private init(_ none: Never) {}
}

/// A certificate (Apple: SecCertificate).
///
/// No value exists: certificates are not supported.
public final class SecCertificate: NSObject, Sendable {
    private init(_ none: Never) {}
}

/// A certificate with its private key (Apple: SecIdentity).
///
/// No value exists: identities are not supported.
public final class SecIdentity: NSObject, Sendable {
    private init(_ none: Never) {}
}

/// An evaluation of the trust in certificates (Apple: SecTrust).
///
/// No value exists: trust is not evaluated.
public final class SecTrust: NSObject, Sendable {
    private init(_ none: Never) {}
}

/// The type number of keys.
///
/// No object has it.
public func SecKeyGetTypeID() -> CFTypeID { CoreFoundationType.key.rawValue }

/// The type number of certificates.
///
/// No object has it.
public func SecCertificateGetTypeID() -> CFTypeID { CoreFoundationType.certificate.rawValue }

/// The type number of identities.
///
/// No object has it.
public func SecIdentityGetTypeID() -> CFTypeID { CoreFoundationType.identity.rawValue }

/// The type number of trust evaluations.
///
/// No object has it.
public func SecTrustGetTypeID() -> CFTypeID { CoreFoundationType.trust.rawValue }
