// SPDX-License-Identifier: Apache-2.0

// The keys that narrow or limit a search (Apple: "Search match keys and values"). Only a search may have them.

/// Find certificates and identities that satisfy a policy.
public let kSecMatchPolicy: CFString = "m_Policy"
/// Search only these items.
///
/// Accepted and without effect.
public let kSecMatchItemList: CFString = "m_ItemList"
/// Search only these keychains (macOS).
///
/// Accepted and without effect: there is one keychain.
public let kSecMatchSearchList: CFString = "m_SearchList"
/// Find certificates and identities with one of these issuers in their chain.
public let kSecMatchIssuers: CFString = "m_Issuers"
/// Find certificates and identities with this mail address, or with none.
public let kSecMatchEmailAddressIfPresent: CFString = "m_EmailAddressIfPresent"
/// Find certificates and identities whose subject contains this string.
///
/// Without effect on passwords.
public let kSecMatchSubjectContains: CFString = "m_SubjectContains"
/// Find internet passwords whose server is this host or a host below it: a string.
public let kSecMatchHostOrSubdomainOfHost: CFString = "m_HostOrSubdomainOfHost"
/// Compare without regard to case.
///
/// Accepted and without effect: passwords are compared byte for byte.
public let kSecMatchCaseInsensitive: CFString = "m_CaseInsensitive"
/// Find only certificates that lead to a trusted root.
public let kSecMatchTrustedOnly: CFString = "m_TrustedOnly"
/// Find only certificates that are valid on a date.
public let kSecMatchValidOnDate: CFString = "m_ValidOnDate"
/// How many items to find: `kSecMatchLimitOne` (the default), `kSecMatchLimitAll` or a number.
public let kSecMatchLimit: CFString = "m_Limit"
/// A value of `kSecMatchLimit`: the first item; the result is not an array.
public let kSecMatchLimitOne: CFString = "m_LimitOne"
/// A value of `kSecMatchLimit`: every item; the result is an array.
public let kSecMatchLimitAll: CFString = "m_LimitAll"
