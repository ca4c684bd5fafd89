// SPDX-License-Identifier: Apache-2.0

// The keys and values of the attributes of certificates and cryptographic keys. They are here so that code that names them
// compiles; on a password they are `errSecNoSuchAttr`, and the classes that have them are not implemented yet.

// MARK: Attributes of certificates

/// The X.500 subject name of a certificate: data.
///
/// Read only.
public let kSecAttrSubject: CFString = "subj"
/// The X.500 issuer name of a certificate: data.
///
/// Read only.
public let kSecAttrIssuer: CFString = "issr"
/// The serial number of a certificate: data.
///
/// Read only.
public let kSecAttrSerialNumber: CFString = "slnr"
/// The subject key identifier of a certificate: data.
///
/// Read only.
public let kSecAttrSubjectKeyID: CFString = "skid"
/// The hash of the public key of a certificate: data.
///
/// Read only.
public let kSecAttrPublicKeyHash: CFString = "pkhh"
/// The type of a certificate: a number.
///
/// Read only.
public let kSecAttrCertificateType: CFString = "ctyp"
/// The encoding of a certificate: a number.
///
/// Read only.
public let kSecAttrCertificateEncoding: CFString = "cenc"

// MARK: Attributes of keys

/// The class of a key: one of the `kSecAttrKeyClass…` values.
public let kSecAttrKeyClass: CFString = "kcls"
/// The label by which a program finds a key, for key pairs the hash of the public key: data.
public let kSecAttrApplicationLabel: CFString = "klbl"
/// A tag of the program's own on a key: data.
public let kSecAttrApplicationTag: CFString = "atag"
/// Whether a key is stored when it is created: a Boolean.
public let kSecAttrIsPermanent: CFString = "perm"
/// Whether a key can leave the keychain only in encrypted form: a Boolean.
public let kSecAttrIsSensitive: CFString = "sens"
/// Whether a key can leave the keychain at all: a Boolean.
public let kSecAttrIsExtractable: CFString = "extr"
/// The algorithm of a key: one of the `kSecAttrKeyType…` values.
public let kSecAttrKeyType: CFString = "type"
/// The size of a key, in bits: a number.
public let kSecAttrKeySizeInBits: CFString = "bsiz"
/// The effective size of a key, in bits: a number.
public let kSecAttrEffectiveKeySize: CFString = "esiz"
/// Whether a key can encrypt: a Boolean.
public let kSecAttrCanEncrypt: CFString = "encr"
/// Whether a key can decrypt: a Boolean.
public let kSecAttrCanDecrypt: CFString = "decr"
/// Whether other keys can be derived from a key: a Boolean.
public let kSecAttrCanDerive: CFString = "drve"
/// Whether a key can sign: a Boolean.
public let kSecAttrCanSign: CFString = "sign"
/// Whether a key can verify a signature: a Boolean.
public let kSecAttrCanVerify: CFString = "vrfy"
/// Whether a key can wrap another key: a Boolean.
public let kSecAttrCanWrap: CFString = "wrap"
/// Whether a key can unwrap another key: a Boolean.
public let kSecAttrCanUnwrap: CFString = "unwp"

// MARK: Values

/// A value of `kSecAttrKeyClass`: the public key of a pair.
public let kSecAttrKeyClassPublic: CFString = "0"
/// A value of `kSecAttrKeyClass`: the private key of a pair.
public let kSecAttrKeyClassPrivate: CFString = "1"
/// A value of `kSecAttrKeyClass`: a key used for both directions.
public let kSecAttrKeyClassSymmetric: CFString = "2"
/// A value of `kSecAttrKeyType`: RSA.
public let kSecAttrKeyTypeRSA: CFString = "42"
/// A value of `kSecAttrKeyType`: elliptic curve; the older name of `kSecAttrKeyTypeECSECPrimeRandom`.
public let kSecAttrKeyTypeEC: CFString = "73"
/// A value of `kSecAttrKeyType`: elliptic curve over a NIST prime field.
public let kSecAttrKeyTypeECSECPrimeRandom: CFString = "73"
/// A value of `kSecAttrTokenID`: the Secure Enclave.
public let kSecAttrTokenIDSecureEnclave: CFString = "com.apple.setoken"
/// The access group of items on hardware tokens: readable, never writable.
public let kSecAttrAccessGroupToken: CFString = "com.apple.token"
