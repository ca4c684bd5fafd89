// SPDX-License-Identifier: Apache-2.0

// The item classes of a SecItem dictionary (Apple: "Item class keys and values").

/// The key whose value says which class of item a dictionary is about.
public let kSecClass: CFString = "class"
/// A password that belongs to a service and an account.
public let kSecClassGenericPassword: CFString = "genp"
/// A password that belongs to a server, a port, a protocol and an account.
public let kSecClassInternetPassword: CFString = "inet"
/// A certificate.
///
/// The SecItem functions answer `errSecUnimplemented` for it.
public let kSecClassCertificate: CFString = "cert"
/// A cryptographic key.
///
/// The SecItem functions answer `errSecUnimplemented` for it.
public let kSecClassKey: CFString = "keys"
/// A certificate with its private key.
///
/// The SecItem functions answer `errSecUnimplemented` for it.
public let kSecClassIdentity: CFString = "idnt"
